// The building blocks of pages: times, badges, copying, tables, lists, forms, dialogs and refusals.
import { Component, createRef, h } from "./preact.mjs";
import htm from "./htm.mjs";
import { Refused, call, curl, parsed, remedy } from "./api.js";
import { link } from "./router.js";
import { distance, local, number, utc } from "./words.js";

export const html = htm.bind(h);

let ids = 0;
const newId = () => `part-${(ids += 1)}`;

// Times, badges, facts -------------------------------------------------------------------------------------------------

// A time in the reader's zone; its title shows it in UTC.
export function Time({ at, none = "never" }) {
  if (!at) return html`<span class="muted">${none}</span>`;
  return html`<time datetime=${at} title=${utc(at)}>${local(at)}</time>`;
}

// `words` say how long ago it was.
export function Ago({ at, none = "never", words = at && distance(at) }) {
  if (!at) return html`<span class="muted">${none}</span>`;
  return html`<time datetime=${at} title=${`${local(at)}, ${utc(at)}`}>${words}</time>`;
}

const KINDS = { active: "good", suspended: "bad", pending: "busy", expired: "busy", revoked: "off", bootstrap: "busy" };

// `sign` tells the kinds apart for those who don't see the colours.
export function Badge({ word, kind = KINDS[word] ?? "off", sign }) {
  return html`<span class=${`badge ${kind}`}>${sign && html`<span aria-hidden="true">${sign}</span> `}${word[0].toUpperCase() + word.slice(1)}</span>`;
}

export function Fact({ name, children }) {
  return html`<div class="fact"><dt>${name}</dt><dd>${children}</dd></div>`;
}

export function Figure({ name, value, note }) {
  return html`<div class="figure"><dt>${name}</dt><dd>${value}${note && html`<small>${note}</small>`}</dd></div>`;
}

// A name of any length, on at most two lines; its title shows it in full.
export const Name = ({ children }) => html`<span class="clamped" title=${children}>${children}</span>`;

export const None = ({ children = "none" }) => html`<span class="muted">${children}</span>`;

// Whether the page that opens next takes the focus: after a link it does, after a reload it does not.
export const opening = { wanted: false };

// A page's heading, which is also the document's title, with the page's actions beside it.
export class Heading extends Component {
  heading = createRef();

  componentDidMount() {
    this.name();
    if (opening.wanted) this.heading.current.focus();
    opening.wanted = false;
  }

  componentDidUpdate() {
    this.name();
  }

  name() {
    document.title = `${this.props.title} · Ledgerline`;
  }

  render({ title, badge, above, children }) {
    return html`<header class="heading">
      ${above && html`<p class="above">${above}</p>`}
      <div class="line">
        <h1 tabindex="-1" ref=${this.heading}><${Name}>${title}</${Name}></h1>
        ${badge}
        <div class="actions">${children}</div>
      </div>
    </header>`;
  }
}

export class Card extends Component {
  id = newId();

  render({ tag = "section", title, actions, children }) {
    return html`<${tag} class="card" aria-labelledby=${this.id}>
      <header class="line"><h2 id=${this.id}>${title}</h2><div class="actions">${actions}</div></header>
      ${children}
    </${tag}>`;
  }
}

// Notices --------------------------------------------------------------------------------------------------------------

// Announces a result, such as "Credential revoked": the frame shows it, and screen readers read it out.
export const notices = new EventTarget();
export const say = (words) => notices.dispatchEvent(new CustomEvent("said", { detail: words }));

// Copying --------------------------------------------------------------------------------------------------------------

export class Copy extends Component {
  state = { copied: false };

  componentWillUnmount() {
    clearTimeout(this.later);
  }

  copy = async ({ currentTarget }) => {
    try {
      await toClipboard(this.props.text(), currentTarget);
    } catch (fault) {
      return say(fault.message);
    }
    this.setState({ copied: true });
    clearTimeout(this.later);
    this.later = setTimeout(() => this.setState({ copied: false }), 2000);
  };

  render({ label, kind = "quiet" }, { copied }) {
    return html`<button type="button" class=${kind} onClick=${this.copy}>${copied ? "Copied" : label}<span class="unseen" role="status">${copied && "Copied to the clipboard"}</span></button>`;
  }
}

// Without TLS, a page can't use the clipboard API. It then selects the text and copies the selection, as a user would.
async function toClipboard(text, beside) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement("textarea"), { value: text, className: "unseen" });
  beside.after(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  beside.focus();
}

export function Curl({ method = "GET", path, body, variable, kind }) {
  return html`<${Copy} label="Copy as curl" kind=${kind} text=${() => curl(method, path, body, variable)} />`;
}

// Refusals -------------------------------------------------------------------------------------------------------------

// A refusal in the API's own words, with the remedy for its code.
export class Fault extends Component {
  state = { remedy: null };

  componentDidMount() {
    this.look();
  }

  componentDidUpdate(before) {
    if (before.fault !== this.props.fault) this.look();
  }

  async look() {
    const { code } = this.props.fault;
    this.setState({ remedy: null });
    if (!code) return;
    const found = await remedy(code).catch(() => null);
    if (code === this.props.fault.code) this.setState({ remedy: found });
  }

  render({ fault, children }, { remedy }) {
    return html`<div class="fault" role="alert">
      <p><strong>${fault.message}.</strong> ${remedy}</p>
      ${fault.code && html`<p class="small"><a href=${`/docs#/errors/${fault.code}`}>${fault.code}</a>${fault.requestId && html`, request <code>${fault.requestId}</code>`}</p>`}
      ${children}
    </div>`;
  }
}

// Answers --------------------------------------------------------------------------------------------------------------

// JSON text as elements: names, strings and other values.
export function Json({ label, text }) {
  const kind = (token, name) => (name ? "name" : token.startsWith('"') ? "string" : "value");
  const tokens = text.matchAll(/("(?:\\.|[^"\\])*")(?=(:)?)|[^\s"{}[\],:]+|[\s{}[\],:]+/g);
  const isPunctuation = (token) => /^[\s{}[\],:]/.test(token);
  const coloured = [...tokens].map(([token, , name]) => (isPunctuation(token) ? token : html`<span class=${kind(token, name)}>${token}</span>`));
  return html`<pre class="json" tabindex="0" aria-label=${label}>${coloured}</pre>`;
}

// Loading --------------------------------------------------------------------------------------------------------------

// Shows the result of `load(signal)`, and loads it again when `of` changes or a child asks for it. Until the new answer is there,
// the children for the former `of` show the former answer. A whole page has a `title`, which is its heading until it has loaded.
export class Loaded extends Component {
  state = { answer: undefined, fault: null, busy: true };

  componentDidMount() {
    this.load();
  }

  componentDidUpdate(before) {
    if (before.of !== this.props.of) this.load();
  }

  componentWillUnmount() {
    this.asked.abort();
  }

  load = async () => {
    this.asked?.abort();
    const { signal } = (this.asked = new AbortController());
    const { of, load } = this.props;
    this.setState({ busy: true });
    try {
      const answer = await load(signal);
      if (!signal.aborted) this.setState({ answer, answered: of, fault: null, busy: false }, keepingFocus());
    } catch (fault) {
      if (!signal.aborted) this.setState({ fault, busy: false });
    }
  };

  render({ of, title, children }, { answer, answered, fault, busy }) {
    const heading = title && html`<${Heading} title=${title} />`;
    if (fault) return html`${heading}<${Fault} fault=${fault}><button type="button" class="secondary" onClick=${this.load}>Try again</button></${Fault}>`;
    if (answer === undefined) return html`${heading}<p class="loading" role="status">Loading</p>`;
    if (of === answered) this.children = children;
    return html`<div class=${busy ? "stale" : ""}>${this.children(answer, this.load)}</div>`;
  }
}

// Returns a function to call after the page has changed: if the focused element is gone, the page's heading takes the focus.
function keepingFocus() {
  const before = document.activeElement;
  return () => {
    if (before !== document.body && !before.isConnected) document.querySelector("h1")?.focus();
  };
}

// Lists ----------------------------------------------------------------------------------------------------------------

// `columns` are {name, cell(row), figures}; the first cell names its row. On narrow screens each row becomes a block.
export function Table({ caption, columns, rows, keyed = (row) => row.id }) {
  return html`<table role="table">
    <caption class="unseen">${caption}</caption>
    <thead role="rowgroup"><tr role="row">${columns.map(({ name, figures }) => html`<th role="columnheader" scope="col" class=${figures ? "figures" : ""}>${name}</th>`)}</tr></thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) => html`<tr role="row" key=${keyed(row)}>
          ${columns.map(({ name, cell, figures }, index) =>
            index === 0
              ? html`<th role="rowheader" scope="row">${cell(row)}</th>`
              : html`<td role="cell" data-name=${name} class=${figures ? "figures" : ""}><div>${cell(row)}</div></td>`,
          )}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

// Links to the previous and the next page of a list, with the filters of `query`.
export function Pager({ pagination, shown, path, query }) {
  const { limit, offset, total } = pagination;
  const to = (start) => link(path, { ...query, offset: start || "" });
  return html`<nav class="pager" aria-label="Pagination">
    <p class="muted" role="status">${shown ? `${number(offset + 1)} to ${number(offset + shown)} of ${number(total)}` : `Nothing on this page; ${number(total)} in total`}</p>
    ${offset > 0 && html`<a href=${to(Math.max(0, offset - limit))} role="button" class="secondary">Previous</a>`}
    ${offset + limit < total && html`<a href=${to(offset + limit)} role="button" class="secondary">Next</a>`}
  </nav>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p><strong>${title}</strong></p>${children && html`<p>${children}</p>`}</div>`;
}

// Filters of a list: `onApply` gets those that are set. Choices apply at once, text with Enter or the button.
export class Filters extends Component {
  form = createRef();

  // Back and forward change the page's query, and the fields follow it.
  componentDidUpdate({ query }) {
    if (JSON.stringify(query) === JSON.stringify(this.props.query)) return;
    for (const field of this.form.current.elements) if (field.name) field.value = this.props.query[field.name] ?? "";
  }

  apply = (event) => {
    event.preventDefault();
    this.props.onApply(Object.fromEntries([...new FormData(this.form.current)].filter(([, value]) => value)));
  };

  render({ children }) {
    const change = (event) => event.target.tagName === "SELECT" && this.apply(event);
    return html`<form class="filters" aria-label="Filters" ref=${this.form} onSubmit=${this.apply} onChange=${change}>${children}<button type="submit" class="secondary">Find</button></form>`;
  }
}

// Forms ----------------------------------------------------------------------------------------------------------------

// A labelled input, select (with `options`, pairs of value and words) or text area (with `rows`).
export class Field extends Component {
  id = newId();

  render({ name, label, hint, wrong, options, rows, value = "", ...attributes }) {
    const fault = wrong?.field === name ? wrong.message : null;
    const noted = `${this.id}-note`;
    const shared = { ...attributes, name, id: this.id, "aria-invalid": fault ? "true" : undefined, "aria-describedby": hint || fault ? noted : undefined };
    return html`<div class="field">
      <label class="label" for=${this.id}>${label}</label>
      ${options
        ? html`<select ...${shared}>${options.map(([each, words]) => html`<option value=${each} selected=${String(each) === String(value)}>${words}</option>`)}</select>`
        : rows
          ? html`<textarea ...${shared} rows=${rows} defaultValue=${value}></textarea>`
          : html`<input type="text" autocomplete="off" ...${shared} defaultValue=${value} />`}
      ${(hint || fault) && html`<small id=${noted} class=${fault ? "wrong" : "muted"}>${fault ?? hint}</small>`}
    </div>`;
  }
}

// One of several checkboxes with the same name.
export function Choice({ name, value, checked }) {
  return html`<label class="choice"><input type="checkbox" name=${name} value=${value} defaultChecked=${checked} />${value}</label>`;
}

// A form that makes a call. `request(data)` turns its FormData into {method, path, body} and, if it takes another than the admin key,
// that `key` and its `variable` in a shell; `onDone` gets the answer. `further` are
// calls that complete it: `{id}` in their path is the id of the credential that the first has created. If one is refused, `undo` takes that back.
// A refusal is shown next to the field that it names, otherwise below. `children` is a function of that refusal.
export class Form extends Component {
  state = { busy: false, fault: null, wrong: null };
  form = createRef();

  submit = async (event) => {
    event.preventDefault();
    this.setState({ busy: true, fault: null, wrong: null });
    try {
      const { further, undo, ...first } = this.asked();
      const answer = await made(first);
      await completed(further, undo, answer);
      this.setState({ busy: false });
      this.props.onDone(answer);
    } catch (fault) {
      this.refused(fault);
    }
  };

  asked() {
    return this.props.request(new FormData(this.form.current));
  }

  refused(fault) {
    const wrong = [...this.form.current.elements].find(({ name }) => name && fault.message.toLowerCase().startsWith(`${name} `));
    this.setState(wrong ? { busy: false, wrong: { field: wrong.name, message: fault.message } } : { busy: false, fault }, () => wrong?.focus());
  }

  curl = () => {
    const { further = [], ...first } = this.asked();
    return [first, ...further].map(({ method, path, body, variable }) => curl(method, path, body && JSON.stringify(body), variable)).join("\n");
  };

  render({ label, danger, onCancel, children }, { busy, fault, wrong }) {
    return html`<form ref=${this.form} onSubmit=${this.submit}>
      ${children(wrong)} ${fault && html`<${Fault} fault=${fault} />`}
      <footer class="line">
        <${Copy} label="Copy as curl" text=${this.curl} />
        <div class="actions">
          ${onCancel && html`<button type="button" class="secondary" autofocus=${danger} onClick=${onCancel}>Cancel</button>`}
          <button type="submit" class=${danger ? "danger" : ""} disabled=${busy} aria-busy=${busy ? "true" : undefined}>${label}</button>
        </div>
      </footer>
    </form>`;
  }
}

const made = ({ method, path, body, key }, id) => call(method, path.replace("{id}", id), { body: body && JSON.stringify(body), key });

async function completed(further = [], undo, { data }) {
  try {
    for (const next of further) await made(next, data.credential.id);
  } catch (fault) {
    await made(undo, data.credential.id);
    throw fault;
  }
}

// The text in a form's field, undefined if there is none.
export const given = (data, name) => data.get(name)?.trim() || undefined;

// The JSON object in a form's field; {} if there is none.
export function jsonObject(data, name) {
  try {
    return parsed(data.get(name).trim() || "{}");
  } catch {
    throw new Refused(`${name} must be a JSON object`);
  }
}

// The local date and time in a form's field, as UTC; undefined if there is none.
export const moment = (data, name) => (data.get(name) ? new Date(data.get(name)).toISOString() : undefined);

// A time as the value of a local date and time field.
export function localValue(iso) {
  if (!iso) return "";
  const at = new Date(iso);
  return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

// Dialogs --------------------------------------------------------------------------------------------------------------

// A modal dialog, open for as long as it is rendered. The focus then returns to where it was. `firm`: Escape does not close it.
export class Dialog extends Component {
  id = newId();
  box = createRef();

  componentDidMount() {
    this.box.current.showModal();
  }

  componentWillUnmount() {
    this.gone = true;
    this.box.current.close();
  }

  closed = () => {
    if (!this.gone) this.props.onClose();
  };

  // Escape is reported at once. The event `close` comes later, and would close a dialog that the next key press has reopened.
  cancelled = (event) => {
    event.preventDefault();
    if (!this.props.firm) this.props.onClose();
  };

  render({ title, children }) {
    return html`<dialog ref=${this.box} aria-labelledby=${this.id} onClose=${this.closed} onCancel=${this.cancelled}>
      <h2 id=${this.id}><${Name}>${title}</${Name}></h2>
      ${children}
    </dialog>`;
  }
}

// A button that opens a dialog; `children(close)` fills it.
export class Opener extends Component {
  state = { open: false };
  close = () => this.setState({ open: false });

  render({ label, title, kind = "secondary", children }, { open }) {
    return html`<button type="button" class=${kind} aria-haspopup="dialog" onClick=${() => this.setState({ open: true })}>${label}</button>
      ${open && html`<${Dialog} title=${title ?? label} onClose=${this.close}>${children(this.close)}</${Dialog}>`}`;
  }
}

// A button that asks for confirmation before it acts; `children` say what will happen.
export function Confirm({ label, title, action, danger = true, request, onDone, children }) {
  return html`<${Opener} label=${label} title=${title} kind=${danger ? "secondary dangerous" : "secondary"}>
    ${(close) => {
      const done = (answer) => {
        close();
        onDone(answer);
      };
      return html`<${Form} label=${action ?? label} danger=${danger} request=${request} onCancel=${close} onDone=${done}>${() => children}</${Form}>`;
    }}
  </${Opener}>`;
}

const KEPT_NOWHERE = "Store this key now. It is shown only once, and the service keeps no copy of it.";

// A key that is shown once, or a secret. Escape does not close this dialog, so that it isn't lost by accident.
export function NewKey({ title, apiKey, intro = KEPT_NOWHERE, what = "key", note, onClose, children }) {
  return html`<${Dialog} title=${title} firm=${true} onClose=${onClose}>
    <p>${intro}</p>
    <div class="secret"><code tabindex="0">${apiKey}</code><${Copy} label=${`Copy ${what}`} kind="primary" text=${() => apiKey} /></div>
    ${note && html`<p>${note}</p>`}
    <footer class="line">${children}<div class="actions"><button type="button" class="secondary" onClick=${onClose}>I have stored it</button></div></footer>
  </${Dialog}>`;
}
