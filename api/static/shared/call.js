// A place to try any chain call with an API key. Its forms are made from /openapi.json, so new endpoints appear automatically.
import { curl, description, session, tried } from "./api.js";
import { Card, Copy, Empty, Fact, Fault, Field, Heading, Loaded, html } from "./parts.js";
import { Component, createRef } from "./preact.mjs";
import { go, link, withQuery } from "./router.js";
import { bytes, milliseconds, pretty } from "./words.js";

const MOST_SHOWN = 200_000; // characters of an answer
const JSON_TYPE = "application/json";

// Open this page with an API key.
export function tryWith(key) {
  session.apiKey = key;
  go("/try");
}

export function Try({ query }) {
  return html`<${Loaded} title="Try a call" of="operations" load=${description}>
    ${(document) => {
      const operations = operationsOf(document);
      const chosen = operations.find(({ id }) => id === query.operation) ?? operations[0];
      return html`
        <${Heading} title="Try a call" />
        <${Card} title="Request and answer">
          <${Operations} operations=${operations} chosen=${chosen} />
          <${Call} key=${chosen.id} operation=${chosen} query=${query} />
        </${Card}>`;
    }}
  </${Loaded}>`;
}

// Every operation that takes an API key.
function operationsOf({ paths }) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { security = [] }]) => security.some((schemes) => "apiKey" in schemes))
      .map(([method, operation]) => ({
        id: operation.operationId,
        method: method.toUpperCase(),
        path,
        tag: operation.tags[0],
        summary: operation.summary,
        description: operation.description,
        parameters: operation.parameters,
        body: operation.requestBody?.content[JSON_TYPE]?.schema,
      })),
  );
}

function Operations({ operations, chosen }) {
  const tags = [...new Set(operations.map(({ tag }) => tag))];
  return html`<div class="field">
    <label class="label" for="operation">Call</label>
    <select id="operation" onChange=${({ target }) => go("/try", { operation: target.value })}>
      ${tags.map(
        (tag) => html`<optgroup label=${tag}>
          ${operations
            .filter((each) => each.tag === tag)
            .map(({ id, summary }) => html`<option value=${id} selected=${id === chosen.id}>${summary}</option>`)}
        </optgroup>`,
      )}
    </select>
    <small class="muted"><code>${chosen.method} ${chosen.path}</code></small>
  </div>`;
}

// The form of an operation, and its answer.
class Call extends Component {
  state = { busy: false, answer: null, fault: null };
  form = createRef();

  send = async (event, path = this.path()) => {
    event?.preventDefault();
    session.apiKey = this.form.current.elements.api_key.value.trim();
    this.setState({ busy: true, fault: null });
    try {
      const began = performance.now();
      const response = await tried(this.props.operation.method, path, session.apiKey, this.body());
      const text = await response.text();
      this.setState({ busy: false, answer: { path, response, text, tookMs: performance.now() - began } });
    } catch (fault) {
      this.setState({ busy: false, answer: null, fault });
    }
  };

  // The path of the request; its parameters, but not the key, go into the address of this page.
  path() {
    const { path, parameters, id } = this.props.operation;
    const data = new FormData(this.form.current);
    const value = ({ name }) => data.get(`parameter ${name}`)?.trim() ?? "";
    const query = Object.fromEntries(parameters.filter((each) => each.in === "query").map((each) => [each.name, value(each)]));
    const all = Object.fromEntries(parameters.map((each) => [each.name, value(each)]));
    history.replaceState(null, "", link("/try", { operation: id, ...all }));
    const filled = parameters.reduce((text, each) => text.replace(`{${each.name}}`, () => encodeURIComponent(value(each))), path);
    return withQuery(filled, query);
  }

  body() {
    return this.props.operation.body && this.form.current.elements.body.value;
  }

  curl = () => curl(this.props.operation.method, this.path(), this.body(), "API_KEY");

  render({ operation, query }, { busy, answer, fault }) {
    const next = answer?.response.headers.get("Link")?.match(/^<([^>]+)>/)?.[1];
    return html`<div class="call">
      <form ref=${this.form} onSubmit=${this.send}>
        ${operation.description && html`<p class="muted small">${operation.description.replaceAll("`", "")}</p>`}
        <${Field} name="api_key" label="API key" type="password" required hint="Kept only in memory, until you sign out or reload the page." spellcheck=${false} value=${session.apiKey} />
        ${inPathFirst(operation.parameters).map((each) => html`<${Parameter} parameter=${each} value=${query[each.name]} />`)}
        ${operation.body && html`<${Field} name="body" label="Body" rows="8" spellcheck=${false} value=${JSON.stringify(exampleOf(operation.body), null, 2)} />`}
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

const inPathFirst = (parameters) => [...parameters].sort((one, other) => (other.in === "path") - (one.in === "path"));

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
    <pre class="json" tabindex="0" aria-label="Answer">${isJson ? coloured(shown.slice(0, MOST_SHOWN)) : shown.slice(0, MOST_SHOWN)}</pre>
    ${shown.length > MOST_SHOWN && html`<p class="muted">The rest is not shown. "Copy answer" copies the whole answer.</p>`}
    <details class="small">
      <summary>Headers</summary>
      <dl class="facts">${[...response.headers].map(([name, value]) => html`<${Fact} name=${name}>${value}</${Fact}>`)}</dl>
    </details>`;
}

// JSON text as elements: names, strings and other values.
function coloured(json) {
  const kind = (token, name) => (name ? "name" : token.startsWith('"') ? "string" : "value");
  const tokens = json.matchAll(/("(?:\\.|[^"\\])*")(?=(:)?)|[^\s"{}[\],:]+|[\s{}[\],:]+/g);
  const isPunctuation = (token) => /^[\s{}[\],:]/.test(token);
  return [...tokens].map(([token, , name]) => (isPunctuation(token) ? token : html`<span class=${kind(token, name)}>${token}</span>`));
}
