// The accounts of a partner's customers: the list, and the page of a single account.
import { get } from "./api.js";
import { CredentialList, NewCredential } from "./credentials.js";
import { Ago, Badge, Card, Confirm, Copy, Curl, Empty, Fact, Field, Filters, Form, Heading, Loaded, Name, None, Opener, Pager, Table, Time, given, html, jsonObject, say } from "./parts.js";
import { go, link, withQuery } from "./router.js";
import { Usage } from "./usage.js";
import { counted } from "./words.js";

const LIMIT = 20;
const STATUSES = [["", "Any status"], ["active", "Active"], ["suspended", "Suspended"], ["pending", "Pending"]];

// The list -------------------------------------------------------------------------------------------------------------

export function Accounts({ query }) {
  const path = withQuery("/v1/admin/users", { limit: LIMIT, ...query });
  return html`
    <${Heading} title="Accounts">
      <${Curl} path=${path} />
      <${Opener} label="New account" kind="primary">${(close) => html`<${AccountForm} label="Create account" request=${creation} onCancel=${close} onDone=${created} />`}</${Opener}>
    </${Heading}>
    <${Card} title="Your customers">
      <${Filters} query=${query} onApply=${(filters) => go("/accounts", filters)}>
        <${Field} name="search" label="Find" type="search" placeholder="Name, reference or email" maxlength="255" value=${query.search} />
        <${Field} name="status" label="Status" options=${STATUSES} value=${query.status} />
      </${Filters}>
      <${Loaded} of=${path} load=${(signal) => get(path, signal)}>${(answer) => html`<${AccountTable} answer=${answer} query=${query} />`}</${Loaded}>
    </${Card}>`;
}

function AccountTable({ answer: { data, pagination }, query }) {
  if (!pagination.total) {
    return query.search || query.status
      ? html`<${Empty} title="No account matches">Change or clear the filters.</${Empty}>`
      : html`<${Empty} title="No accounts yet">An account represents one of your customers and holds their credentials.</${Empty}>`;
  }
  const columns = [
    { name: "Name", cell: (user) => html`<a href=${link(`/accounts/${user.id}`)}><${Name}>${user.name}</${Name}></a>` },
    { name: "Reference", cell: (user) => optional(user.external_id) },
    { name: "Email", cell: (user) => optional(user.email) },
    { name: "Plan", cell: (user) => optional(user.billing_plan) },
    { name: "Status", cell: (user) => html`<${Badge} word=${user.status} />` },
    { name: "Created", figures: true, cell: (user) => html`<${Ago} at=${user.created_at} />` },
  ];
  return html`<${Table} caption="Accounts" columns=${columns} rows=${data} /><${Pager} pagination=${pagination} shown=${data.length} path="/accounts" query=${query} />`;
}

const optional = (text) => (text === null ? html`<${None} />` : html`<${Name}>${text}</${Name}>`);

// One account ----------------------------------------------------------------------------------------------------------

export function Account({ id, query }) {
  const path = `/v1/admin/users/${id}`;
  return html`<${Loaded} title="Account" of=${path} load=${(signal) => get(path, signal)}>
    ${({ data: user }, reload) => html`<${AccountPage} user=${user} path=${path} query=${query} reload=${reload} />`}
  </${Loaded}>`;
}

function AccountPage({ user, path, query, reload }) {
  const changed = ({ message }) => {
    say(message);
    reload();
  };
  const edited = (close) => (answer) => {
    close();
    changed(answer);
  };
  const post = (action) => () => ({ method: "POST", path: `${path}/${action}` });
  return html`
    <${Heading} title=${user.name} badge=${html`<${Badge} word=${user.status} />`} above=${html`<a href=${link("/accounts")}>Accounts</a>`}>
      <${Opener} label="Edit" title=${`Edit ${user.name}`}>
        ${(close) => html`<${AccountForm} user=${user} label="Save" request=${(data) => changes(data, user)} onCancel=${close} onDone=${edited(close)} />`}
      </${Opener}>
      ${user.status === "suspended"
        ? html`<${Confirm} label="Reactivate" title=${`Reactivate ${user.name}?`} danger=${false} request=${post("reactivate")} onDone=${changed}>
            <p>The API keys of this account will be accepted again immediately.</p>
          </${Confirm}>`
        : html`<${Confirm} label="Suspend" title=${`Suspend ${user.name}?`} request=${post("suspend")} onDone=${changed}>
            <p>All API keys of this account will be refused from the next request on, until you reactivate the account.</p>
          </${Confirm}>`}
      <${Confirm} label="Delete" title=${`Delete ${user.name}?`} action="Delete account" request=${() => ({ method: "DELETE", path })} onDone=${deleted}>
        <p>
          All API keys of this account will be revoked immediately. Its name, reference, email, plan and metadata, and the names, descriptions
          and IP networks of its credentials will be erased, including in the audit log. Usage will be kept under the ids of the account and
          its credentials.
        </p>
        <p><strong>This can't be undone.</strong></p>
      </${Confirm}>
    </${Heading}>
    <${Card} title="Account" actions=${html`<${Curl} path=${path} />`}>
      <dl class="facts">
        <${Fact} name="Reference">${optional(user.external_id)}</${Fact}>
        <${Fact} name="Email">${optional(user.email)}</${Fact}>
        <${Fact} name="Plan">${optional(user.billing_plan)}</${Fact}>
        <${Fact} name="Created"><${Time} at=${user.created_at} /></${Fact}>
        <${Fact} name="Last changed"><${Time} at=${user.updated_at} /></${Fact}>
        <${Fact} name="Id"><code>${user.id}</code> <${Copy} label="Copy" text=${() => user.id} /></${Fact}>
        ${Object.keys(user.metadata).length > 0 && html`<${Fact} name="Metadata"><pre>${JSON.stringify(user.metadata, null, 2)}</pre></${Fact}>`}
      </dl>
      <p class="small"><a href=${link("/audit", { target_id: user.id })}>Audit log for this account</a></p>
    </${Card}>
    <${CredentialsOf} user=${user} />
    <${Usage} breakdown=${`${path}/usage/breakdown`} path=${`/accounts/${user.id}`} query=${query} />`;
}

function CredentialsOf({ user }) {
  const filters = { user_account_id: user.id, includeRevoked: "true" };
  const path = withQuery("/v1/admin/credentials", { ...filters, limit: LIMIT });
  const actions = html`<${Curl} path=${path} /><${NewCredential} user=${user} />`;
  return html`<${Card} title="Credentials" actions=${actions}>
    <${Loaded} of=${path} load=${(signal) => get(path, signal)}>${(answer) => html`<${CredentialList} answer=${answer} query=${filters} ofAccount />`}</${Loaded}>
  </${Card}>`;
}

// Forms ----------------------------------------------------------------------------------------------------------------

function AccountForm({ user = {}, ...form }) {
  const metadata = user.metadata && Object.keys(user.metadata).length ? JSON.stringify(user.metadata, null, 2) : "";
  return html`<${Form} ...${form}>
    ${(wrong) => html`
      <${Field} name="name" label="Name" required maxlength="255" wrong=${wrong} value=${user.name} />
      <${Field} name="external_id" label="Reference" hint="Your own id for this customer. It must be unique among your accounts." maxlength="255" wrong=${wrong} value=${user.external_id} />
      <div class="pair">
        <${Field} name="email" label="Email" type="email" maxlength="255" wrong=${wrong} value=${user.email} />
        <${Field} name="billing_plan" label="Plan" maxlength="255" wrong=${wrong} value=${user.billing_plan} />
      </div>
      <${Field} name="metadata" label="Metadata" hint="A JSON object with your own data." rows="3" spellcheck=${false} wrong=${wrong} value=${metadata} />
    `}
  </${Form}>`;
}

const TEXTS = ["name", "external_id", "email", "billing_plan"];

function creation(data) {
  const body = Object.fromEntries(TEXTS.map((name) => [name, given(data, name)]));
  const metadata = jsonObject(data, "metadata");
  if (Object.keys(metadata).length) body.metadata = metadata;
  return { method: "POST", path: "/v1/admin/users", body };
}

// Only the fields that differ, so that a change made to the account in the meantime is kept.
function changes(data, user) {
  const body = {};
  for (const name of TEXTS) {
    const value = given(data, name) ?? null;
    if (value !== user[name]) body[name] = value;
  }
  const metadata = jsonObject(data, "metadata");
  if (JSON.stringify(metadata) !== JSON.stringify(user.metadata)) body.metadata = metadata;
  return { method: "PATCH", path: `/v1/admin/users/${user.id}`, body };
}

function created({ data, message }) {
  go(`/accounts/${data.id}`);
  say(message);
}

function deleted({ data, message }) {
  go("/accounts");
  say(`${message}, with ${counted(data.revoked_credentials, "credential")}`);
}
