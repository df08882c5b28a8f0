// The fields of a JSON object, from its schema. Those of objects inside it are shown on request.
import { Line } from "./markdown.js";
import { html } from "./parts.js";
import { Component } from "./preact.mjs";

const REF = "#/components/schemas/";

// `named` are the document's schemas.
export function Fields({ schema, named }) {
  const { properties = {}, required = [] } = objectOf(schema, named) ?? {};
  return html`<ul class="fields">
    ${Object.entries(properties).map(
      ([name, field]) => html`<li>
        <${Item} name=${name} schema=${field} required=${required.includes(name)} description=${field.description} />
        ${objectOf(field, named)?.properties && html`<${Inner} name=${name} schema=${field} named=${named} />`}
      </li>`,
    )}
  </ul>`;
}

// A field or a parameter: its name, type, place, bounds, default and meaning.
export function Item({ name, schema, place, required, description }) {
  const notes = [typeOf(schema), place, required && "required", ...boundsOf(schema), schema.default !== undefined && `default ${schema.default}`];
  return html`<p class="item-line"><code>${name}</code> <span class="muted">${notes.filter(Boolean).join(", ")}</span></p>
    ${description && html`<p class="muted small"><${Line} text=${description} /></p>`}`;
}

// Rendered when it is opened: schemas may refer to themselves.
class Inner extends Component {
  state = { open: false };

  render({ name, schema, named }, { open }) {
    return html`<details class="small" onToggle=${({ target }) => this.setState({ open: target.open })}>
      <summary>Fields of <code>${name}</code></summary>
      ${open && html`<${Fields} schema=${schema} named=${named} />`}
    </details>`;
  }
}

// The schema of the object that a value is, or has as items or values; undefined if there is none.
function objectOf(schema, named) {
  if (schema.$ref) return objectOf(named[schema.$ref.slice(REF.length)], named);
  if (schema.properties) return schema;
  const inner = [schema.items, schema.additionalProperties, ...(schema.anyOf ?? [])].filter((each) => each && typeof each === "object");
  return inner.map((each) => objectOf(each, named)).find(Boolean);
}

// `type` of a schema with alternatives holds for each of them.
function typeOf({ $ref, anyOf, type, items, format, enum: words, const: only }) {
  if ($ref) return $ref.slice(REF.length);
  if (anyOf) return anyOf.map((each) => typeOf({ type, ...each })).join(" or ");
  if (words) return words.map((word) => word ?? "null").join(" | ");
  if (only !== undefined) return String(only);
  if (type === "array") return `array of ${items ? typeOf(items) : "any"}`;
  return format ? `${type} (${format})` : (type ?? "any");
}

function boundsOf({ minimum, maximum, maxLength, maxItems, items, anyOf = [] }) {
  const range = minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}` : minimum !== undefined ? `from ${minimum}` : "";
  const most = [maxLength && `at most ${maxLength} characters`, maxItems && `at most ${maxItems} items`];
  return [range, ...most, ...(items?.maxLength ? [`each of at most ${items.maxLength} characters`] : []), ...anyOf.flatMap(boundsOf)].filter(Boolean);
}
