// The audit log, with filters.
import { get } from "./api.js";
import { Card, Curl, Empty, Field, Filters, Heading, Loaded, Name, None, Pager, Table, Time, html } from "./parts.js";
import { go, link, withQuery } from "./router.js";
import { actionName } from "./words.js";

const LIMIT = 50;
const ACTIONS = {
  user_account: ["created", "updated", "suspended", "reactivated", "deleted", "viewed", "listed"],
  credential: ["created", "updated", "rotated", "revoked", "viewed", "listed"],
  admin_key: ["created", "revoked"],
};
const TARGETS = [["", "Any target"], ["user_account", "Accounts"], ["credential", "Credentials"], ["admin_key", "Admin keys"]];

export function Audit({ query }) {
  // An action or a request that is asked for is shown even if it only reads.
  const includeReads = query.includeReads ?? String(Boolean(query.action || query.request_id));
  const path = withQuery("/v1/admin/audit-logs", { limit: LIMIT, ...query, from: startOf(query.from), to: endOf(query.to), includeReads });
  const actions = Object.entries(ACTIONS).flatMap(([target, verbs]) => verbs.map((verb) => `${target}.${verb}`));
  return html`
    <${Heading} title="Audit log"><${Curl} path=${path} /></${Heading}>
    <${Card} title="Who did what, and when">
      <${Filters} query=${query} onApply=${(filters) => go("/audit", filters)}>
        <${Field} name="action" label="Action" options=${[["", "Any action"], ...actions.map((action) => [action, actionName(action)])]} value=${query.action} />
        <${Field} name="includeReads" label="Reads" options=${[["", "Hidden"], ["true", "Shown"]]} value=${query.includeReads} />
        <${Field} name="target_type" label="Target" options=${TARGETS} value=${query.target_type} />
        <${Field} name="target_id" label="Target id" maxlength="36" value=${query.target_id} />
        <${Field} name="from" label="From" type="date" value=${query.from} />
        <${Field} name="to" label="To" type="date" value=${query.to} />
        <${Field} name="request_id" label="Request id" maxlength="255" value=${query.request_id} />
      </${Filters}>
      <${Loaded} of=${path} load=${(signal) => get(path, signal)}>${(answer) => html`<${Entries} answer=${answer} query=${query} />`}</${Loaded}>
    </${Card}>`;
}

function Entries({ answer: { data, pagination }, query }) {
  if (!pagination.total) {
    return Object.keys(query).length ? html`<${Empty} title="No entry matches">Change or clear the filters.</${Empty}>` : html`<${Empty} title="No entries yet" />`;
  }
  const columns = [
    { name: "Time", cell: (entry) => html`<${Time} at=${entry.created_at} />` },
    { name: "Action", cell: (entry) => actionName(entry.action) },
    { name: "Target", cell: (entry) => html`<${Target} entry=${entry} />` },
    { name: "By", cell: (entry) => html`<${Name}>${entry.admin_entity_name}</${Name}>${entry.ip_address && html`<small class="muted"> from ${entry.ip_address}</small>`}` },
    { name: "Details", cell: (entry) => html`<${Details} entry=${entry} />` },
  ];
  return html`<${Table} caption="Audit log" columns=${columns} rows=${data} /><${Pager} pagination=${pagination} shown=${data.length} path="/audit" query=${query} />`;
}

const PAGES = { user_account: "accounts", credential: "credentials" };

function Target({ entry: { target_id: id, target_type: type, details } }) {
  if (!id) return html`<${None} children="a list" />`;
  const name = html`<${Name}>${details.name ?? `${id.slice(0, 8)}…`}</${Name}>`;
  return PAGES[type] ? html`<a href=${link(`/${PAGES[type]}/${id}`)} title=${id}>${name}</a>` : html`<span title=${id}>${name}</span>`;
}

function Details({ entry: { details } }) {
  const { request_id: requestId, ...others } = details;
  return html`<details class="small">
    <summary>${others.fields?.join(", ") ?? "Details"}</summary>
    <pre>${JSON.stringify(others, null, 2)}</pre>
    ${requestId && html`<p>Request <a href=${link("/audit", { request_id: requestId })}>${requestId}</a></p>`}
  </details>`;
}

// The first and the last instant of a day in the reader's zone.
const startOf = (day) => day && new Date(`${day}T00:00:00`).toISOString();
const endOf = (day) => day && new Date(`${day}T23:59:59.999`).toISOString();
