// An operation: what it takes, samples, a call to try, its answer and its errors.
import { Call, KEYS, inPathFirst } from "./call.js";
import { Fields, Item } from "./fields.js";
import { Line } from "./markdown.js";
import { Card, Heading, Json, html } from "./parts.js";
import { link } from "./router.js";
import { Samples } from "./samples.js";
import { pretty } from "./words.js";

const PLACES = { path: "in the path", query: "in the query", header: "in the header" };

export function Operation({ operation, document, query }) {
  const { id, key, method, path, summary, description, parameters, body } = operation;
  const place = (values) => link(`/${id}`, values);
  return html`
    <${Heading} title=${summary} above=${operation.tag} />
    <p class="call-line"><strong class="method">${method}</strong> <code>${path}</code></p>
    ${description && html`<p><${Line} text=${description} /></p>`}
    <p class="muted">Key: ${key ? KEYS[key].label : "none"}</p>
    ${parameters.length > 0 && html`<${Card} title="Parameters"><${Parameters} parameters=${parameters} /></${Card}>`}
    ${body && html`<${Card} title="Body"><p class="muted">${body.schema.description}</p><${Fields} schema=${body.schema} named=${document.components.schemas} /></${Card}>`}
    <${Card} title="Samples"><${Samples} samples=${operation["x-codeSamples"]} /></${Card}>
    <${Card} title="Try it"><${Call} operation=${operation} query=${query} place=${place} /></${Card}>
    <${Answer} responses=${operation.responses} named=${document.components.schemas} />
    <${Card} title="Errors"><${Errors} responses=${operation.responses} /></${Card}>`;
}

function Parameters({ parameters }) {
  return html`<ul class="fields">
    ${inPathFirst(parameters).map(
      ({ name, in: where, required, description, schema }) => html`<li>
        <${Item} name=${name} schema=${schema} place=${PLACES[where]} required=${required} description=${description} />
      </li>`,
    )}
  </ul>`;
}

function Answer({ responses, named }) {
  const [status, { headers, content }] = Object.entries(responses).find(([status]) => status.startsWith("2"));
  const [[mediaType, { schema, example }], ...others] = Object.entries(content);
  return html`<${Card} title=${`Answer ${status}`}>
    <p class="muted">${[mediaType, ...others.map(([other]) => other)].join(" or ")}</p>
    <${Fields} schema=${schema} named=${named} />
    ${example !== undefined && html`<h3>Example</h3><${Example} example=${example} />`}
    <h3>Headers</h3>
    <p>${Object.keys(headers).map((name) => html`<a class="item" href=${link(`/headers/${name}`)}>${name}</a>`)}</p>
  </${Card}>`;
}

function Example({ example }) {
  if (typeof example === "string") return html`<pre class="json" tabindex="0" aria-label="Example">${example}</pre>`;
  return html`<${Json} label="Example" text=${pretty(JSON.stringify(example))} />`;
}

// One line for each message. What the codes mean is told once, on a page of its own.
function Errors({ responses }) {
  const rows = Object.entries(responses).flatMap(([status, { content }]) =>
    Object.values(content["application/json"]?.examples ?? {}).map(({ summary, value }) => ({ status, code: summary.split(": ", 1)[0], message: value.error })),
  );
  return html`<ul class="errors">
    ${rows.map(({ status, code, message }) => html`<li><span class="muted">${status}</span> <a href=${link(`/errors/${code}`)}>${code}</a> <span>${message}</span></li>`)}
  </ul>`;
}
