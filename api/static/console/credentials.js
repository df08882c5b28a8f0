// The list of credentials, and the creation of one.
import { get } from "./api.js";
import { Ago, Badge, Card, Curl, Dialog, Empty, Field, Filters, Form, Heading, Loaded, Name, NewKey, Pager, Table, given, html, moment, say } from "./parts.js";
import { Component } from "./preact.mjs";
import { go, link, withQuery } from "./router.js";
import { QuotaFields, RestrictionFields, quotaIn, restrictionsIn, scopes } from "./rules.js";
import { tryWith } from "./try.js";
import { NETWORKS } from "./words.js";

const LIMIT = 20;
const ONE = "/v1/admin/credentials/{id}";
const MAX_ACCOUNTS = 100; // the largest page of the list
const STATUSES = [["", "Not revoked"], ["active", "Active"], ["expired", "Expired"], ["revoked", "Revoked"]];
const NETWORK_CHOICES = NETWORKS.map((name, id) => [id, name]);

// The list -------------------------------------------------------------------------------------------------------------

export function Credentials({ query }) {
  const path = withQuery("/v1/admin/credentials", { limit: LIMIT, ...query });
  return html`
    <${Heading} title="Credentials"><${Curl} path=${path} /><${NewCredential} /></${Heading}>
    <${Card} title="API keys of your customers">
      <${Filters} query=${query} onApply=${(filters) => go("/credentials", filters)}>
        <${Field} name="search" label="Find" type="search" placeholder="Name, description or prefix" maxlength="255" value=${query.search} />
        <${Field} name="network_id" label="Network" options=${[["", "Any network"], ...NETWORK_CHOICES]} value=${query.network_id} />
        <${Field} name="status" label="Status" options=${STATUSES} value=${query.status} />
      </${Filters}>
      <${Loaded} of=${path} load=${(signal) => get(path, signal)}>${(answer) => html`<${CredentialList} answer=${answer} query=${query} />`}</${Loaded}>
    </${Card}>`;
}

// `ofAccount`: the list is on the page of the account that the credentials belong to.
export function CredentialList({ answer: { data, pagination }, query, ofAccount = false }) {
  if (!pagination.total) {
    return !ofAccount && Object.keys(query).length
      ? html`<${Empty} title="No credential matches">Change or clear the filters.</${Empty}>`
      : html`<${Empty} title="No credentials yet">A credential is an API key for one account and one network.</${Empty}>`;
  }
  const account = { name: "Account", cell: (each) => html`<a href=${link(`/accounts/${each.user_account_id}`)}><${Name}>${each.user_account_name}</${Name}></a>` };
  const columns = [
    { name: "Name", cell: (each) => html`<a href=${link(`/credentials/${each.id}`)}><${Name}>${each.name}</${Name}></a>` },
    { name: "Key", cell: (each) => html`<code>${each.api_key_prefix}…</code>` },
    ...(ofAccount ? [] : [account]),
    { name: "Network", cell: (each) => NETWORKS[each.network_id] },
    { name: "Status", cell: (each) => html`<${Badge} word=${statusOf(each)} />` },
    { name: "Last used", figures: true, cell: (each) => html`<${Ago} at=${each.last_used_at} />` },
  ];
  return html`<${Table} caption="Credentials" columns=${columns} rows=${data} /><${Pager} pagination=${pagination} shown=${data.length} path="/credentials" query=${query} />`;
}

export function statusOf(credential) {
  if (credential.revoked) return "revoked";
  return credential.expires_at && Date.parse(credential.expires_at) <= Date.now() ? "expired" : "active";
}

// Creation -------------------------------------------------------------------------------------------------------------

// A button that creates a credential, shows its key once, and then opens the credential's page.
export class NewCredential extends Component {
  state = { open: false, made: null };
  close = () => this.setState({ open: false });

  created = ({ data }) => this.setState({ open: false, made: data });

  leave = () => {
    const { credential } = this.state.made;
    this.setState({ made: null });
    go(`/credentials/${credential.id}`);
    say("Credential created");
  };

  tryIt = () => {
    const { api_key: apiKey } = this.state.made;
    this.setState({ made: null });
    tryWith(apiKey);
  };

  render({ user }, { open, made }) {
    return html`
      <button type="button" class="primary" aria-haspopup="dialog" onClick=${() => this.setState({ open: true })}>New credential</button>
      ${open &&
      html`<${Dialog} title="New credential" onClose=${this.close}>
        <${CreationForm} user=${user} onCancel=${this.close} onDone=${this.created} />
      </${Dialog}>`}
      ${made &&
      html`<${NewKey} title=${`The key of ${made.credential.name}`} apiKey=${made.api_key} onClose=${this.leave}>
        <button type="button" class="quiet" onClick=${this.tryIt}>Try it</button>
      </${NewKey}>`}
    `;
  }
}

function CreationForm({ user, ...form }) {
  return html`<${Loaded} of="scopes" load=${scopes}>
    ${(offered) => html`<${Form} label="Create credential" request=${(data) => creation(data, user)} ...${form}>
    ${(wrong) => html`
      ${user ? html`<p class="muted">For ${user.name}.</p>` : html`<${AccountChoice} wrong=${wrong} />`}
      <${Field} name="name" label="Name" required maxlength="255" placeholder="Production backend" wrong=${wrong} />
      <${Field} name="network_id" label="Network" required hint="The key works only on this network. This can't be changed later." options=${[["", "Choose a network"], ...NETWORK_CHOICES]} wrong=${wrong} />
      <div class="pair">
        <${Field} name="rate_limit_per_minute" label="Requests per minute" type="number" min="1" max="10000" required wrong=${wrong} value="60" />
        <${Field} name="expires_at" label="Expires" hint="Leave empty for no expiry." type="datetime-local" wrong=${wrong} />
      </div>
      <${QuotaFields} wrong=${wrong} />
      <${RestrictionFields} scopes=${offered} wrong=${wrong} />
      <${Field} name="description" label="Description" maxlength="2000" wrong=${wrong} />
    `}
    </${Form}>`}
  </${Loaded}>`;
}

// Offers the newest accounts; for any other, the user starts from that account's page.
function AccountChoice({ wrong }) {
  const path = withQuery("/v1/admin/users", { limit: MAX_ACCOUNTS });
  return html`<${Loaded} of=${path} load=${(signal) => get(path, signal)}>
    ${({ data, pagination }) => html`<${Field}
      name="user_account_id"
      label="Account"
      required
      hint=${pagination.hasMore ? "Only the newest accounts are listed. For any other, create the credential on the account's page." : null}
      options=${[["", "Choose an account"], ...data.map(({ id, name, external_id: reference }) => [id, reference ? `${name} (${reference})` : name])]}
      wrong=${wrong}
    />`}
  </${Loaded}>`;
}

// The quota and the restrictions are calls of their own. If one is refused, the credential is revoked before anyone has its key.
function creation(data, user) {
  const body = {
    name: given(data, "name"),
    user_account_id: user?.id ?? given(data, "user_account_id"),
    network_id: Number(data.get("network_id")),
    description: given(data, "description"),
    expires_at: moment(data, "expires_at"),
    rate_limit_per_minute: Number(data.get("rate_limit_per_minute")),
  };
  const quota = quotaIn(data);
  const restrictions = restrictionsIn(data);
  const further = [];
  if (quota) further.push({ method: "PUT", path: `${ONE}/limits`, body: { quota } });
  if (restrictions.ip_networks.length || restrictions.scopes.length) further.push({ method: "PUT", path: `${ONE}/restrictions`, body: restrictions });
  return { method: "POST", path: "/v1/admin/credentials", body, further, undo: { method: "DELETE", path: ONE } };
}
