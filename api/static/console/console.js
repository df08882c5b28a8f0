// The page at /console: signing in with an admin key, the frame around the pages, and which page is shown.
import { Component, createRef, render } from "./preact.mjs";
import { Account, Accounts } from "./accounts.js";
import { AdminKeys } from "./admin-keys.js";
import { session, signIn } from "./api.js";
import { Audit } from "./audit.js";
import { Credential } from "./credential.js";
import { Credentials } from "./credentials.js";
import { Overview } from "./overview.js";
import { Fault, Field, Heading, html, notices, opening } from "./parts.js";
import { here, link } from "./router.js";
import { Subscription } from "./subscription.js";
import { Subscriptions } from "./subscriptions.js";
import { Try } from "./try.js";

// Of each page: the path, the name, the component of the list and, for some, the component of a single item.
const SHARED_PAGES = [["audit", "Audit log", Audit], ["try", "Try a call", Try]];
const PARTNER_PAGES = [["", "Overview", Overview], ["accounts", "Accounts", Accounts, Account], ["credentials", "Credentials", Credentials, Credential], ["subscriptions", "Subscriptions", Subscriptions, Subscription], ...SHARED_PAGES];
const BOOTSTRAP_PAGES = [["admin-keys", "Admin keys", AdminKeys], ...SHARED_PAGES];

class Console extends Component {
  // `bootstrap` is null until the kind of key is known; `ended` says why a session has ended.
  state = { signedIn: Boolean(session.key), bootstrap: null, ended: null, fault: null, at: here() };

  componentDidMount() {
    session.onRefused = (fault) => this.signOut(`You have been signed out: the service no longer accepts this admin key (${fault.message}).`);
    window.addEventListener("hashchange", this.moved);
    if (session.key) this.resume();
  }

  // After a reload: is the key still valid, and which kind is it?
  resume = async () => {
    this.setState({ fault: null });
    try {
      this.setState({ bootstrap: await signIn(session.key) });
    } catch (fault) {
      if (fault.status === 403 || fault.status === 401) session.onRefused(fault);
      else this.setState({ fault });
    }
  };

  moved = () => {
    const at = here();
    opening.wanted = at.segments.join("/") !== this.state.at.segments.join("/");
    this.setState({ at });
  };

  signedIn = (bootstrap) => {
    opening.wanted = true;
    this.setState({ signedIn: true, bootstrap, ended: null });
  };

  signOut = (ended = null) => {
    session.end();
    this.setState({ signedIn: false, bootstrap: null, ended });
  };

  render(_, { signedIn, bootstrap, ended, fault, at }) {
    if (!signedIn) return html`<${SignIn} ended=${ended} onDone=${this.signedIn} />`;
    if (fault) return html`<main id="main" tabindex="-1" class="gate"><${Fault} fault=${fault}><button type="button" onClick=${this.resume}>Try again</button></${Fault}></main>`;
    if (bootstrap === null) return html`<main id="main" tabindex="-1" class="gate"><p class="loading" role="status">Loading</p></main>`;
    return html`<${Frame} pages=${bootstrap ? BOOTSTRAP_PAGES : PARTNER_PAGES} bootstrap=${bootstrap} at=${at} onSignOut=${() => this.signOut()} />`;
  }
}

// Signing in -----------------------------------------------------------------------------------------------------------

class SignIn extends Component {
  state = { busy: false, fault: null };
  form = createRef();

  componentDidMount() {
    document.title = "Sign in · Ledgerline";
    this.form.current.elements.admin_key.focus();
  }

  submit = async (event) => {
    event.preventDefault();
    const { admin_key: field } = this.form.current.elements;
    this.setState({ busy: true, fault: null });
    try {
      this.props.onDone(await signIn(field.value.trim()));
    } catch (fault) {
      this.setState({ busy: false, fault }, () => field.focus());
    }
  };

  render({ ended }, { busy, fault }) {
    const wrong = fault && { field: "admin_key", message: `${fault.message}.` };
    return html`<main id="main" tabindex="-1" class="gate">
      <section class="card">
        <h1>Console</h1>
        <p class="muted">Administer your customers' accounts and API keys.</p>
        <div role="alert">${ended && !fault && html`<p class="fault">${ended}</p>`}</div>
        <form ref=${this.form} onSubmit=${this.submit}>
          <${Field} name="admin_key" label="Admin key" type="password" required spellcheck=${false} placeholder="iiak_admin_…"
            hint="The key stays in this tab and is forgotten when you close the tab. No cookie is set." wrong=${wrong} />
          <button type="submit" disabled=${busy} aria-busy=${busy ? "true" : undefined}>Sign in</button>
        </form>
      </section>
    </main>`;
  }
}

// The frame ------------------------------------------------------------------------------------------------------------

class Frame extends Component {
  state = { notice: null };

  componentDidMount() {
    notices.addEventListener("said", this.said);
    window.addEventListener("hashchange", this.left);
  }

  componentWillUnmount() {
    notices.removeEventListener("said", this.said);
    window.removeEventListener("hashchange", this.left);
  }

  said = ({ detail }) => this.setState({ notice: { words: detail, at: location.hash } });

  dismiss = () => this.setState({ notice: null });

  // A notice disappears when another page is opened.
  left = () => {
    if (this.state.notice && this.state.notice.at !== location.hash) this.dismiss();
  };

  render({ pages, bootstrap, at, onSignOut }, { notice }) {
    const [name = pages[0][0], id] = at.segments;
    return html`
      <div class="frame">
        <div class="side">
          <nav aria-label="Pages">
            ${pages.map(([path, words]) => html`<a href=${link(`/${path}`)} aria-current=${path === name ? "page" : undefined}>${words}</a>`)}
          </nav>
          <section class="who" aria-label="Session">
            <p class="small muted">${bootstrap ? "Bootstrap key" : "Partner"}<br /><code>${session.key?.slice(0, 19)}…</code></p>
            <button type="button" class="quiet" onClick=${onSignOut}>Sign out</button>
          </section>
        </div>
        <main id="main" tabindex="-1">
          <div role="status" class="notices">
            ${notice && html`<p class="notice">${notice.words}<button type="button" class="quiet" aria-label="Dismiss" onClick=${this.dismiss}>×</button></p>`}
          </div>
          <${Page} key=${at.segments.join("/")} page=${pages.find(([path]) => path === name)} id=${id} query=${at.query} />
        </main>
      </div>`;
  }
}

// The list of a page or, with an id, a single item of it. A page that fails to render leaves the frame and the other pages as they are.
class Page extends Component {
  state = { failed: false };

  componentDidCatch(error) {
    reportError(error);
    this.setState({ failed: true });
  }

  render({ page, id, query }, { failed }) {
    if (failed) return html`<${Heading} title="This page has failed" /><p>Reload it, or open another one.</p>`;
    const [, , List, One] = page ?? [];
    if (!List || (id && !One)) return html`<${Heading} title="Page not found" /><p><a href=${link("/")}>Go to the start page</a></p>`;
    return id ? html`<${One} id=${id} query=${query} />` : html`<${List} query=${query} />`;
  }
}

const page = document.getElementById("page");
page.replaceChildren();
render(html`<${Console} />`, page);
