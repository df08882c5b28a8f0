// A form that makes a call, and its answer. It is made from the operation's entry in /openapi.json.
import { curl, session, tried } from "./api.js";
import { Copy, Empty, Fact, Fault, Field, Json, html } from "./parts.js";
import { Component, createRef } from "./preact.mjs";
import { withQuery } from "./router.js";
import { bytes, milliseconds, pretty } from "./words.js";

const MAX_SHOWN = 200_000; // characters of an answer
const JSON_TYPE = "application/json";

// By security scheme: what the key is called, and its variable in a shell.
export const KEYS = { apiKey: { label: "API key", variable: "API_KEY" }, adminKey: { label: "Admin key", variable: "ADMIN_KEY" } };

// The form of an operation. `query` has values for its parameters, and `place(values)` is the address of the page with them.
export class Call extends Component {
  state = { busy: false, answer: null, fault: null };
  form = createRef();

  send = async (event, path = this.path()) => {
    event?.preventDefault();
    const { method, key } = this.props.operation;
    if (key) session.tried[key] = this.form.current.elements.key.value.trim();
    this.setState({ busy: true, fault: null });
    try {
      const began = performance.now();
      const response = await tried(method, path, { key: session.tried[key], body: this.body(), headers: this.headers() });
      const text = await response.text();
      this.setState({ busy: false, answer: { path, response, text, tookMs: performance.now() - began } });
    } catch (fault) {
      this.setState({ busy: false, answer: null, fault });
    }
  };

  // The path of the request; its parameters, but not the key, go into the address of this page.
  path() {
    const { path } = this.props.operation;
    const inPath = this.values("path");
    const query = this.values("query");
    history.replaceState(null, "", this.props.place({ ...inPath, ...query }));
    const filled = Object.entries(inPath).reduce((text, [name, value]) => text.replace(`{${name}}`, () => encodeURIComponent(value)), path);
    return withQuery(filled, query);
  }

  // What the form holds for the parameters in the path, the query or the header.
  values(place) {
    const data = new FormData(this.form.current);
    const here = this.props.operation.parameters.filter((each) => each.in === place);
    return Object.fromEntries(here.map(({ name }) => [name, data.get(`parameter ${name}`).trim()]));
  }

  headers() {
    return Object.fromEntries(Object.entries(this.values("header")).filter(([, value]) => value));
  }

  body() {
    return this.props.operation.body && this.form.current.elements.body.value;
  }

  curl = () => {
    const { method, key } = this.props.operation;
    return curl(method, this.path(), this.body(), KEYS[key]?.variable ?? "", this.headers());
  };

  render({ operation, query }, { busy, answer, fault }) {
    const next = answer?.response.headers.get("Link")?.match(/^<([^>]+)>/)?.[1];
    return html`<div class="call">
      <form ref=${this.form} onSubmit=${this.send}>
        ${operation.key && html`<${Field} name="key" label=${KEYS[operation.key].label} type="password" required hint="Kept only in memory. A reload forgets it." spellcheck=${false} value=${session.tried[operation.key]} />`}
        ${inPathFirst(operation.parameters).map((each) => html`<${Parameter} parameter=${each} value=${query[each.name]} />`)}
        ${operation.body && html`<${Field} name="body" label="Body" rows="8" spellcheck=${false} value=${JSON.stringify(exampleOf(operation.body.schema), null, 2)} />`}
        <footer class="line">
          <${Copy} label="Copy as curl" text=${this.curl} />
          <div class="actions"><button type="submit" disabled=${busy} aria-busy=${busy ? "true" : undefined}>Send</button></div>
        </footer>
      </form>
      <div class="answer" aria-live="polite">
        ${fault && html`<${Fault} fault=${fault} />`}
        ${answer ? html`<${Answer} ...${answer} />` : !fault && html`<${Empty} title="No answer yet">Send the request to see the answer.</${Empty}>`}
        ${next && html`<button type="button" class="secondary" onClick=${() => this.send(null, next)}>Next page</button>`}
      </div>
    </div>`;
  }
}

export const inPathFirst = (parameters) => [...parameters].sort((one, other) => (other.in === "path") - (one.in === "path"));

function Parameter({ parameter: { name, required, description: hint, schema, example }, value }) {
  const shared = { name: `parameter ${name}`, label: name, hint: hint.replaceAll("`", ""), required, value: value ?? example };
  if (schema.enum || schema.type === "boolean") {
    const words = schema.enum ?? ["true", "false"];
    const usual = schema.default === undefined ? "not sent" : `not sent (default: ${schema.default})`;
    return html`<${Field} ...${shared} options=${[...(required ? [] : [["", usual]]), ...words.map((word) => [word, word])]} />`;
  }
  if (schema.type === "integer") return html`<${Field} ...${shared} type="number" min=${schema.minimum} max=${schema.maximum} placeholder=${schema.default} />`;
  return html`<${Field} ...${shared} spellcheck=${false} />`;
}

const exampleOf = ({ properties = {} }) => Object.fromEntries(Object.entries(properties).flatMap(([name, { examples }]) => (examples ? [[name, examples[0]]] : [])));

function Answer({ path, response, text, tookMs }) {
  const isJson = response.headers.get("Content-Type")?.startsWith(JSON_TYPE);
  const shown = isJson ? pretty(text) : text;
  const left = response.headers.get("RateLimit-Remaining");
  return html`
    <p class="line">
      <strong class=${response.ok ? "badge good" : "badge bad"}>${response.status}</strong>
      <span class="muted">
        ${milliseconds(tookMs)}, ${bytes(new Blob([text]).size)}${left !== null && `, ${left} of ${response.headers.get("RateLimit-Limit")} requests left this minute`}
      </span>
      <${Copy} label="Copy answer" text=${() => text} />
    </p>
    <p class="small"><code>${path}</code></p>
    ${isJson ? html`<${Json} label="Answer" text=${shown.slice(0, MAX_SHOWN)} />` : html`<pre class="json" tabindex="0" aria-label="Answer">${shown.slice(0, MAX_SHOWN)}</pre>`}
    ${shown.length > MAX_SHOWN && html`<p class="muted">The rest is not shown. "Copy answer" copies the whole answer.</p>`}
    <details class="small">
      <summary>Headers</summary>
      <dl class="facts">${[...response.headers].map(([name, value]) => html`<${Fact} name=${name}>${value}</${Fact}>`)}</dl>
    </details>`;
}
