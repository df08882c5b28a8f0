// What credentials are told of: their subscriptions, and how the delivery to their webhooks goes.
import { call, get, session } from "./api.js";
import { KEYS } from "./call.js";
import { Ago, Badge, Card, Curl, Empty, Field, Heading, Loaded, Name, None, Opener, Pager, Table, Time, html } from "./parts.js";
import { Component } from "./preact.mjs";
import { link, withQuery } from "./router.js";
import { counted, milliseconds, number } from "./words.js";

const LIMIT = 20;
const MAX_PAGE = 100; // webhooks in an answer

const KINDS = { new: "off", catching_up: "busy", live: "good", active: "good", paused: "busy", failing: "bad", ended: "off" };
const ERRORS = {
  unreachable: "not reachable",
  timeout: "no answer in time",
  tls: "TLS failed",
  invalid_response: "not a valid HTTP response",
  internal: "failed in the service",
  events_not_kept: "the event is no longer kept",
};

// Reading with an API key ----------------------------------------------------------------------------------------------

export const getWith = (key, path, signal) => call("GET", path, { key, signal });

// Asks for an API key, since an admin key can't change subscriptions; `children(key, another)` get it and a button to use another.
export class WithKey extends Component {
  state = { apiKey: session.tried.apiKey };

  keep = (apiKey) => {
    session.tried.apiKey = apiKey;
    this.setState({ apiKey }, () => document.querySelector("h1").focus());
  };

  submit = (event) => {
    event.preventDefault();
    this.keep(event.currentTarget.elements.key.value.trim());
  };

  render({ title, children }, { apiKey }) {
    if (apiKey) return children(apiKey, html`<button type="button" class="secondary" onClick=${() => this.keep("")}>Use another key</button>`);
    return html`
      <${Heading} title=${title} />
      <${Card} title="With which API key?">
        <p>A subscription is read and changed with the API key of its credential. An admin key shows only its state, on the credential's page.</p>
        <form onSubmit=${this.submit}>
          <${Field} name="key" label=${KEYS.apiKey.label} type="password" required spellcheck=${false} hint="Kept only in memory. A reload forgets it. What is read counts as usage of the key." />
          <footer class="line"><div class="actions"><button type="submit">Open</button></div></footer>
        </form>
      </${Card}>`;
  }
}

export function Subscriptions({ query }) {
  const path = withQuery("/v1/subscriptions", { limit: LIMIT, ...query });
  return html`<${WithKey} title="Subscriptions">
    ${(apiKey, another) => html`
      <${Heading} title="Subscriptions"><${Curl} path=${path} variable=${KEYS.apiKey.variable} />${another}</${Heading}>
      <${Card} title="Of this API key">
        <${Loaded} of=${path} load=${(signal) => getWith(apiKey, path, signal)}>
          ${(answer) => html`<${SubscriptionList} answer=${answer} columns=${COLUMNS} path="/subscriptions" query=${query} />`}
        </${Loaded}>
      </${Card}>`}
  </${WithKey}>`;
}

function SubscriptionList({ answer: { data, pagination }, columns, path, query }) {
  if (!pagination.total) return html`<${Empty} title="No subscriptions yet">The key of a credential creates them with <code>POST /v1/subscriptions</code>.</${Empty}>`;
  return html`<${Table} caption="Subscriptions" columns=${columns} rows=${data} /><${Pager} pagination=${pagination} shown=${data.length} path=${path} query=${query} />`;
}

// Reading with the admin key -------------------------------------------------------------------------------------------

// The subscriptions of a credential, as its partner may read them.
export function SubscriptionsOf({ credential, path, query }) {
  const base = `/v1/admin/credentials/${credential.id}`;
  const offset = Number(query.offset ?? 0);
  const page = withQuery(`${base}/subscriptions`, { limit: LIMIT, offset: offset || "" });
  const load = async (signal) => {
    const answer = await get(page, signal);
    return { ...answer, webhooks: answer.data.length ? await webhooksUpTo(base, offset + LIMIT, signal) : new Map() };
  };
  return html`<${Card} title="Subscriptions" actions=${html`<${Curl} path=${page} />`}>
    <${Loaded} of=${page} load=${load}>
      ${({ webhooks, ...answer }) => html`<${SubscriptionList} answer=${answer} columns=${[...COLUMNS, webhookIn(webhooks)]} path=${path} query=${query} />`}
    </${Loaded}>
  </${Card}>`;
}

// The webhooks of the first so many subscriptions, by their ids: both lists have the same order, and not every subscription has one.
async function webhooksUpTo(base, count, signal) {
  const found = new Map();
  for (let offset = 0; offset < count; offset += MAX_PAGE) {
    const { data, pagination } = await get(withQuery(`${base}/webhooks`, { limit: Math.min(MAX_PAGE, count - offset), offset: offset || "" }), signal);
    data.forEach((webhook) => found.set(webhook.id, webhook));
    if (!pagination.hasMore) break;
  }
  return found;
}

const webhookIn = (webhooks) => ({ name: "Webhook", cell: ({ id }) => (webhooks.has(id) ? html`<${Delivery} webhook=${webhooks.get(id)} />` : html`<${None} />`) });

// What both show -------------------------------------------------------------------------------------------------------

const COLUMNS = [
  { name: "Subscription", cell: ({ id }) => html`<a href=${link(`/subscriptions/${id}`)} title=${id}>${id.slice(0, 8)}…</a>` },
  { name: "State", cell: ({ state }) => html`<${State} of=${state} />` },
  { name: "Subjects", figures: true, cell: (each) => number(each.subject_count) },
  { name: "Last event", figures: true, cell: (each) => number(each.last_number) },
  { name: "Complete to block", figures: true, cell: ({ complete_to: to }) => (to ? number(to.block_no) : html`<${None} />`) },
];

export const State = ({ of }) => html`<${Badge} word=${of.replace("_", " ")} kind=${KINDS[of]} />`;

function Delivery({ webhook }) {
  return html`
    <${State} of=${webhook.state} /> <${Name}>${webhook.url}</${Name}>
    <div class="small"><${Progress} webhook=${webhook} /></div>
    <${Opener} label=${html`Attempts<span class="unseen"> to send to ${webhook.url}</span>`} title="Last attempts">
      ${(close) => html`<${Attempts} webhook=${webhook} /><footer class="line"><div class="actions"><button type="button" class="secondary" onClick=${close}>Close</button></div></footer>`}
    </${Opener}>`;
}

// How far a webhook has got, and why its next event has not arrived.
export function Progress({ webhook }) {
  const { delivered_number: delivered, last_number: last, failures, next_attempt_at: next, attempts } = webhook;
  return html`${number(delivered)} of ${counted(last, "event")} delivered
    ${failures > 0 && html`; ${counted(failures, "attempt")} to send the next one failed${attempts.length > 0 && `, the last: ${resultOf(attempts[0])}`}`}
    ${next && html`; next attempt <${Ago} at=${next} />`}`;
}

export function Attempts({ webhook: { attempts } }) {
  if (!attempts.length) return html`<${Empty} title="No attempts yet" />`;
  const columns = [
    { name: "Event", cell: (each) => html`${number(each.number)}<br /><span class="small muted">attempt ${each.attempt}</span>` },
    { name: "Result", cell: (each) => html`<span class=${isDelivered(each) ? "" : "wrong"}>${resultOf(each)}</span>` },
    { name: "Took", figures: true, cell: (each) => milliseconds(each.took_ms) },
    { name: "Time", cell: (each) => html`<${Time} at=${each.tried_at} />` },
  ];
  return html`<${Table} caption="Last attempts" columns=${columns} rows=${attempts} keyed=${(each) => `${each.number} ${each.attempt} ${each.tried_at}`} />`;
}

const isDelivered = ({ status }) => status >= 200 && status < 300;
const resultOf = (attempt) => (attempt.status === null ? ERRORS[attempt.error] ?? attempt.error : `${isDelivered(attempt) ? "delivered" : "refused"}, status ${attempt.status}`);
