// A place to try any chain call with an API key.
import { description, operationsOf, session } from "./api.js";
import { Call } from "./call.js";
import { Card, Heading, Loaded, html } from "./parts.js";
import { go, link } from "./router.js";

// Open this page with an API key.
export function tryWith(key) {
  session.tried = { apiKey: key };
  go("/try");
}

export function Try({ query }) {
  return html`<${Loaded} title="Try a call" of="operations" load=${description}>
    ${(document) => {
      const operations = operationsOf(document).filter(({ key }) => key === "apiKey");
      const chosen = operations.find(({ id }) => id === query.operation) ?? operations[0];
      const place = (values) => link("/try", { operation: chosen.id, ...values });
      return html`
        <${Heading} title="Try a call" />
        <${Card} title="Request and answer">
          <${Operations} operations=${operations} chosen=${chosen} />
          ${chosen.description && html`<p class="muted small">${chosen.description.replaceAll("`", "")}</p>`}
          <${Call} key=${chosen.id} operation=${chosen} query=${query} place=${place} />
        </${Card}>`;
    }}
  </${Loaded}>`;
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
