// The page of one credential: its key, limits, restrictions, subscriptions and usage.
import { get } from "./api.js";
import { statusOf } from "./credentials.js";
import { Ago, Badge, Card, Confirm, Copy, Curl, Dialog, Fact, Field, Form, Heading, Loaded, Name, NewKey, None, Opener, Time, given, html, localValue, moment, say } from "./parts.js";
import { Component } from "./preact.mjs";
import { link } from "./router.js";
import { QuotaFields, RestrictionFields, quotaIn, restrictionsIn, scopes } from "./rules.js";
import { SubscriptionsOf } from "./subscriptions.js";
import { tryWith } from "./try.js";
import { Usage } from "./usage.js";
import { NETWORKS, local, number } from "./words.js";

const OVERLAPS = [[0, "Immediately"], [3_600, "After an hour"], [86_400, "After a day"], [604_800, "After 7 days"], [2_592_000, "After 30 days"]];
const USUAL_OVERLAP = 86_400;

export function Credential({ id, query }) {
  const path = `/v1/admin/credentials/${id}`;
  const load = async (signal) => {
    const answers = await Promise.all(["", "/limits", "/restrictions"].map((part) => get(path + part, signal)));
    return answers.map(({ data }) => data);
  };
  return html`<${Loaded} title="Credential" of=${path} load=${load}>
    ${([credential, limits, restrictions], reload) => {
      const changed = ({ message }) => {
        say(message);
        reload();
      };
      return html`<${CredentialPage} ...${{ credential, limits, restrictions, path, query, changed }} />`;
    }}
  </${Loaded}>`;
}

function CredentialPage({ credential, limits, restrictions, path, query, changed }) {
  const status = statusOf(credential);
  const editor = (what, form, values, at) => html`
    <${Curl} path=${at} />
    ${status !== "revoked" && html`<${Editor} label=${html`Change<span class="unseen"> ${what}</span>`} title=${`Change ${what}`} form=${form} values=${values} path=${at} changed=${changed} />`}`;
  return html`
    <${Heading} title=${credential.name} badge=${html`<${Badge} word=${status} />`} above=${html`<a href=${link("/credentials")}>Credentials</a>`}>
      ${status !== "revoked" &&
      html`<${Editor} label="Edit" title=${`Edit ${credential.name}`} form=${EditForm} values=${credential} path=${path} changed=${changed} />
        <${Rotate} credential=${credential} path=${path} changed=${changed} />
        <${Confirm} label="Revoke" title=${`Revoke ${credential.name}?`} action="Revoke key" request=${() => ({ method: "DELETE", path })} onDone=${changed}>
          <p>All keys of this credential will be refused from the next request on. Its record and usage will be kept. This can't be undone.</p>
        </${Confirm}>`}
    </${Heading}>
    <div class="columns">
      <${Card} title="Credential" actions=${html`<${Curl} path=${path} />`}><${Facts} credential=${credential} /></${Card}>
      <div>
        <${Card} title="Limits" actions=${editor("limits", LimitForm, limits, `${path}/limits`)}>
          <dl class="facts">
            <${Fact} name="Rate">${number(limits.rate_limit_per_minute)} requests per minute</${Fact}>
            <${Fact} name="Quota">${limits.quota ? `${number(limits.quota.requests)} requests per ${limits.quota.per} (UTC)` : html`<${None} />`}</${Fact}>
            <${Fact} name="Expires"><${Time} at=${limits.expires_at} /></${Fact}>
          </dl>
        </${Card}>
        <${Card} title="Restrictions" actions=${editor("restrictions", RestrictionForm, restrictions, `${path}/restrictions`)}>
          <dl class="facts">
            <${Fact} name="Networks">
              ${restrictions.ip_networks.length ? restrictions.ip_networks.map((network) => html`<code class="item">${network}</code>`) : "from anywhere"}
            </${Fact}>
            <${Fact} name="Scopes">${restrictions.scopes.length ? restrictions.scopes.join(", ") : "everything but submit"}</${Fact}>
          </dl>
        </${Card}>
      </div>
    </div>
    <${SubscriptionsOf} credential=${credential} path=${`/credentials/${credential.id}`} query=${query} />
    <${Usage} breakdown=${`/v1/admin/usage/${credential.id}/breakdown`} limits=${limits} path=${`/credentials/${credential.id}`} query=${query} />`;
}

function Facts({ credential }) {
  return html`<dl class="facts">
      <${Fact} name="Account"><a href=${link(`/accounts/${credential.user_account_id}`)}><${Name}>${credential.user_account_name}</${Name}></a></${Fact}>
      <${Fact} name="Network">${NETWORKS[credential.network_id]}</${Fact}>
      <${Fact} name="Key"><code>${credential.api_key_prefix}…</code></${Fact}>
      <${Fact} name="Description">${credential.description ?? html`<${None} />`}</${Fact}>
      <${Fact} name="Created"><${Time} at=${credential.created_at} /></${Fact}>
      <${Fact} name="Last used"><${Ago} at=${credential.last_used_at} /></${Fact}>
      ${credential.revoked && html`<${Fact} name="Revoked"><${Time} at=${credential.revoked_at} /></${Fact}>`}
      <${Fact} name="Id"><code>${credential.id}</code> <${Copy} label="Copy" text=${() => credential.id} /></${Fact}>
    </dl>
    <p class="small"><a href=${link("/audit", { target_id: credential.id })}>Audit log for this credential</a></p>`;
}

// Changes --------------------------------------------------------------------------------------------------------------

// A button that opens one of the forms below.
function Editor({ label, title, form, values, path, changed }) {
  return html`<${Opener} label=${label} title=${title}>
    ${(close) => {
      const done = (answer) => {
        close();
        changed(answer);
      };
      return html`<${form} values=${values} path=${path} onCancel=${close} onDone=${done} />`;
    }}
  </${Opener}>`;
}

function EditForm({ values, path, ...form }) {
  const request = (data) => ({ method: "PATCH", path, body: { name: given(data, "name"), description: given(data, "description") ?? null } });
  return html`<${Form} label="Save" request=${request} ...${form}>
    ${(wrong) => html`
      <${Field} name="name" label="Name" required maxlength="255" wrong=${wrong} value=${values.name} />
      <${Field} name="description" label="Description" rows="3" maxlength="2000" wrong=${wrong} value=${values.description ?? ""} />
    `}
  </${Form}>`;
}

function LimitForm({ values, path, ...form }) {
  const request = (data) => {
    const unchanged = data.get("expires_at") === localValue(values.expires_at);
    const expiry = unchanged ? {} : { expires_at: moment(data, "expires_at") ?? null };
    return { method: "PUT", path, body: { rate_limit_per_minute: Number(data.get("rate_limit_per_minute")), quota: quotaIn(data), ...expiry } };
  };
  return html`<${Form} label="Save limits" request=${request} ...${form}>
    ${(wrong) => html`
      <p class="muted">Changes apply from the next request with any key of this credential.</p>
      <${Field} name="rate_limit_per_minute" label="Requests per minute" type="number" min="1" max="10000" required wrong=${wrong} value=${values.rate_limit_per_minute} />
      <${QuotaFields} quota=${values.quota} wrong=${wrong} />
      <${Field} name="expires_at" label="Expires" hint="Leave empty for no expiry." type="datetime-local" wrong=${wrong} value=${localValue(values.expires_at)} />
    `}
  </${Form}>`;
}

function RestrictionForm({ values, path, ...form }) {
  const request = (data) => ({ method: "PUT", path, body: restrictionsIn(data) });
  return html`<${Loaded} of="scopes" load=${scopes}>
    ${(offered) => html`<${Form} label="Save restrictions" request=${request} ...${form}>
      ${(wrong) => html`
        <p class="muted">Changes apply from the next request with any key of this credential.</p>
        <${RestrictionFields} scopes=${offered} values=${values} wrong=${wrong} />
      `}
    </${Form}>`}
  </${Loaded}>`;
}

// Rotation -------------------------------------------------------------------------------------------------------------

class Rotate extends Component {
  state = { open: false, made: null };
  close = () => this.setState({ open: false });
  rotated = (answer) => this.setState({ open: false, made: answer });

  leave = () => {
    this.setState({ made: null });
    this.props.changed({ message: "Credential rotated" });
  };

  tryIt = () => {
    const { api_key: apiKey } = this.state.made.data;
    this.setState({ made: null });
    tryWith(apiKey);
  };

  render({ credential, path }, { open, made }) {
    const request = (data) => ({ method: "POST", path: `${path}/rotate`, body: { overlap_seconds: Number(data.get("overlap_seconds")) } });
    const former = made?.data.former_key;
    return html`
      <button type="button" class="secondary" aria-haspopup="dialog" onClick=${() => this.setState({ open: true })}>Rotate</button>
      ${open &&
      html`<${Dialog} title=${`Rotate ${credential.name}`} onClose=${this.close}>
        <${Form} label="Rotate key" request=${request} onCancel=${this.close} onDone=${this.rotated}>
          ${(wrong) => html`
            <p>The credential gets a new key. Its limits, restrictions and usage stay the same, and both keys share them.</p>
            <${Field} name="overlap_seconds" label="The former key expires" options=${OVERLAPS} value=${USUAL_OVERLAP} wrong=${wrong} />
          `}
        </${Form}>
      </${Dialog}>`}
      ${made &&
      html`<${NewKey} title=${`The new key of ${credential.name}`} apiKey=${made.data.api_key} onClose=${this.leave}
        note=${`The former key, ${former.api_key_prefix}…, expires on ${local(former.ends_at)}.`}>
        <button type="button" class="quiet" onClick=${this.tryIt}>Try it</button>
      </${NewKey}>`}
    `;
  }
}
