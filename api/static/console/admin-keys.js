// The admin keys of partners. Only the bootstrap key sees this page.
import { choices, get } from "./api.js";
import { Ago, Badge, Card, Choice, Confirm, Curl, Dialog, Field, Form, Heading, Loaded, Name, NewKey, None, Pager, Table, Time, given, html, say } from "./parts.js";
import { Component } from "./preact.mjs";
import { withQuery } from "./router.js";

const LIMIT = 20;
const PATH = "/v1/admin/admin-keys";

export function AdminKeys({ query }) {
  const path = withQuery(PATH, { limit: LIMIT, ...query });
  return html`<${Loaded} title="Admin keys" of=${path} load=${(signal) => get(path, signal)}>
    ${(answer, reload) => html`
      <${Heading} title="Admin keys"><${Curl} path=${path} /><${NewAdminKey} onDone=${reload} /></${Heading}>
      <${Card} title="Partners"><${Keys} answer=${answer} query=${query} reload=${reload} /></${Card}>
    `}
  </${Loaded}>`;
}

function Keys({ answer: { data, pagination }, query, reload }) {
  const revoked = ({ message }) => {
    say(message);
    reload();
  };
  const columns = [
    { name: "Partner", cell: (key) => html`<${Name}>${key.entity_name}</${Name}>` },
    { name: "Key", cell: (key) => html`<code>${key.key_prefix}…</code>` },
    { name: "Permissions", cell: (key) => (key.is_bootstrap ? html`<${None}>admin keys only</${None}>` : key.permissions.join(", ")) },
    { name: "Status", cell: (key) => html`<${Badge} word=${key.revoked ? "revoked" : key.is_bootstrap ? "bootstrap" : "active"} />` },
    { name: "Created", cell: (key) => html`<${Time} at=${key.created_at} />` },
    { name: "Last used", cell: (key) => html`<${Ago} at=${key.last_used_at} />` },
    { name: "Change", cell: (key) => !key.revoked && !key.is_bootstrap && html`<${Revocation} adminKey=${key} onDone=${revoked} />` },
  ];
  return html`<${Table} caption="Admin keys" columns=${columns} rows=${data} /><${Pager} pagination=${pagination} shown=${data.length} path="/admin-keys" query=${query} />`;
}

function Revocation({ adminKey, onDone }) {
  const request = () => ({ method: "DELETE", path: `${PATH}/${adminKey.id}` });
  return html`<${Confirm} label="Revoke" title=${`Revoke the key of ${adminKey.entity_name}?`} action="Revoke admin key" request=${request} onDone=${onDone}>
    <p>From the next request on, this partner will no longer be able to administer its accounts. The API keys of its customers will continue to work. This can't be undone.</p>
  </${Confirm}>`;
}

// A button that creates an admin key and shows it once.
class NewAdminKey extends Component {
  state = { open: false, made: null };
  close = () => this.setState({ open: false });
  created = ({ data }) => this.setState({ open: false, made: data });

  leave = () => {
    this.setState({ made: null });
    say("Admin key created");
    this.props.onDone();
  };

  render(_, { open, made }) {
    return html`
      <button type="button" class="primary" aria-haspopup="dialog" onClick=${() => this.setState({ open: true })}>New admin key</button>
      ${open &&
      html`<${Dialog} title="New admin key" onClose=${this.close}>
        <${CreationForm} onCancel=${this.close} onDone=${this.created} />
      </${Dialog}>`}
      ${made && html`<${NewKey} title=${`The admin key of ${made.admin_key.entity_name}`} apiKey=${made.key} onClose=${this.leave} />`}
    `;
  }
}

function CreationForm(form) {
  const request = (data) => ({ method: "POST", path: PATH, body: { entity_name: given(data, "entity_name"), permissions: data.getAll("permissions") } });
  return html`<${Loaded} of="permissions" load=${() => choices(PATH, "post", "permissions")}>
    ${(permissions) => html`<${Form} label="Create admin key" request=${request} ...${form}>
      ${(wrong) => html`
        <${Field} name="entity_name" label="Partner" required maxlength="255" wrong=${wrong} />
        <fieldset>
          <legend class="label">Permissions</legend>
          ${permissions.map((permission) => html`<${Choice} name="permissions" value=${permission} checked />`)}
        </fieldset>
      `}
    </${Form}>`}
  </${Loaded}>`;
}
