// The page at /docs: an introduction, each operation, the errors and the headers, made from /openapi.json.
import { description, operationsOf } from "./api.js";
import { Line, Markdown } from "./markdown.js";
import { Operation } from "./operation.js";
import { Fact, Fault, Heading, html, opening } from "./parts.js";
import { Component, createRef, render } from "./preact.mjs";
import { here, link } from "./router.js";
import { counted } from "./words.js";

const OVERVIEWS = [["", "Introduction"], ["errors", "Errors"], ["headers", "Headers"]];

class Reference extends Component {
  state = { document: null, fault: null, at: here() };

  componentDidMount() {
    window.addEventListener("hashchange", this.moved);
    this.load();
  }

  load = async () => {
    this.setState({ fault: null });
    try {
      this.setState({ document: await description() });
    } catch (fault) {
      this.setState({ fault });
    }
  };

  moved = () => {
    const at = here();
    opening.wanted = at.segments.join("/") !== this.state.at.segments.join("/");
    this.setState({ at });
  };

  render(_, { document, fault, at }) {
    if (fault) return html`<main id="main" tabindex="-1"><${Fault} fault=${fault}><button type="button" class="secondary" onClick=${this.load}>Try again</button></${Fault}></main>`;
    if (!document) return html`<main id="main" tabindex="-1"><p class="loading" role="status">Loading</p></main>`;
    const operations = operationsOf(document);
    return html`<div class="frame">
      <${Contents} document=${document} operations=${operations} current=${at.segments[0] ?? ""} />
      <main id="main" tabindex="-1"><${Page} key=${at.segments.join("/")} document=${document} operations=${operations} at=${at} /></main>
    </div>`;
  }
}

function Page({ document, operations, at: { segments, query } }) {
  const [name = "", item] = segments;
  if (name === "") return html`<${Introduction} document=${document} />`;
  if (name === "errors") return html`<${Errors} errors=${document["x-errors"]} item=${item} />`;
  if (name === "headers") return html`<${Headers} headers=${document.components.headers} item=${item} />`;
  const operation = operations.find(({ id }) => id === name);
  if (!operation) return html`<${Heading} title="Not found" /><p>There is no such operation. Search for it, or go to the <a href=${link("/")}>introduction</a>.</p>`;
  return html`<${Operation} operation=${operation} document=${document} query=${query} />`;
}

// Contents and search --------------------------------------------------------------------------------------------------

class Contents extends Component {
  state = { wanted: "", open: false };
  list = createRef();

  componentDidMount() {
    this.reveal();
  }

  // Once a link is followed, a narrow page closes the list, and a wide one scrolls it to what is shown.
  componentDidUpdate({ current }) {
    if (current !== this.props.current) this.setState({ open: false, wanted: "" }, this.reveal);
  }

  reveal = () => this.list.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });

  search = (event) => {
    event.preventDefault();
    const [first] = this.list.current.querySelectorAll("a");
    first?.click();
  };

  render({ document, operations, current }, { wanted, open }) {
    const found = matching(wanted, operations, document["x-errors"]);
    const tags = [...new Set(found.operations.map(({ tag }) => tag))];
    const entry = (path, words, name) => html`<a href=${link(`/${path}`)} aria-current=${name === current ? "page" : undefined}>${words}</a>`;
    return html`<div class="side">
      <form aria-label="Search" onSubmit=${this.search}>
        <label class="unseen" for="search">Search the reference</label>
        <input id="search" type="search" placeholder="Search" autocomplete="off" value=${wanted} onInput=${({ target }) => this.setState({ wanted: target.value })} />
        <button type="button" class="secondary contents" aria-expanded=${String(open)} aria-controls="contents" onClick=${() => this.setState({ open: !open })}>Contents</button>
      </form>
      <p class="unseen" role="status">${wanted && counted(found.operations.length + found.errors.length, "match", "matches")}</p>
      <nav id="contents" aria-label="Reference" class=${open || wanted ? "open" : ""} ref=${this.list}>
        ${!wanted && html`<div class="group">${OVERVIEWS.map(([name, words]) => entry(name, words, name))}</div>`}
        ${tags.map(
          (tag) => html`<div class="group">
            <p>${tag}</p>
            ${found.operations.filter((each) => each.tag === tag).map(({ id, summary, method }) => entry(id, html`${summary} <small class="method">${method}</small>`, id))}
          </div>`,
        )}
        ${found.errors.length > 0 && html`<div class="group"><p>Errors</p>${found.errors.map(({ code }) => entry(`errors/${code}`, code))}</div>`}
        ${wanted && !tags.length && !found.errors.length && html`<p class="muted">Nothing matches.</p>`}
      </nav>
    </div>`;
  }
}

// The operations that have all words of a search, and the errors, of which there are none without a search.
function matching(wanted, operations, errors) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (...texts) => {
    const text = texts.join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const fields = (operation) => Object.keys(operation.body?.schema.properties ?? {});
  return {
    operations: operations.filter((each) =>
      has(each.method, each.path, each.id, each.tag, each.summary, each.description, ...each.parameters.map(({ name }) => name), ...fields(each)),
    ),
    errors: words.length ? errors.filter(({ code, causes }) => has(code, ...causes)) : [],
  };
}

// Overviews ------------------------------------------------------------------------------------------------------------

function Introduction({ document: { info } }) {
  return html`<${Heading} title=${info.title} /><p class="lead">${info.summary}</p><${Markdown} text=${info.description} />`;
}

function Errors({ errors, item }) {
  return html`
    <${Heading} title="Errors" />
    ${errors.map(
      ({ code, status, causes, remedies, example }) => html`<${Entry} name=${code} badge=${status} wanted=${code === item}>
        <dl class="facts">
          <${Fact} name="Cause"><${Line} text=${causes.join(" ")} /></${Fact}>
          <${Fact} name="Remedy"><${Line} text=${remedies.join(" ")} /></${Fact}>
          ${example && html`<${Fact} name="Example"><code>${example.request}</code> <span>${example.error}</span></${Fact}>`}
        </dl>
      </${Entry}>`,
    )}`;
}

function Headers({ headers, item }) {
  return html`
    <${Heading} title="Headers" />
    <p>Headers of answers. Each operation lists those that its answers have.</p>
    ${Object.entries(headers).map(([name, { description }]) => html`<${Entry} name=${name} wanted=${name === item}><p class="muted"><${Line} text=${description} /></p></${Entry}>`)}`;
}

// An entry of an overview; the one that the address names takes the focus.
class Entry extends Component {
  heading = createRef();

  componentDidMount() {
    if (this.props.wanted) this.heading.current.focus();
  }

  render({ name, badge, children }) {
    return html`<section class="entry">
      <h2 tabindex="-1" ref=${this.heading}><code>${name}</code>${badge && html` <span class="badge">${badge}</span>`}</h2>
      ${children}
    </section>`;
  }
}

const page = document.getElementById("page");
page.replaceChildren();
render(html`<${Reference} />`, page);
