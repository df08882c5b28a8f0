// The page of one subscription, for its API key: its webhook, which can be changed here, and its events as they happen.
import { Refused, call, parsed } from "./api.js";
import { Badge, Card, Confirm, Copy, Curl, Empty, Fact, Fault, Field, Filters, Form, Heading, Json, Loaded, Name, NewKey, None, Opener, Table, Time, html, say } from "./parts.js";
import { Component } from "./preact.mjs";
import { go, link, withQuery } from "./router.js";
import { Attempts, Progress, State, WithKey, getWith } from "./subscriptions.js";
import { NETWORKS, number } from "./words.js";

const PAGE = 20; // events that are read when the page opens
const MAX_SHOWN = 100; // events; older ones make room for new ones
const ACTIONS = { apply: "good", undo: "bad", reset: "bad", notice: "busy" };

export const Subscription = ({ id, query }) => html`<${WithKey} title="Subscription">${(key, another) => html`<${Opened} ...${{ id, query, apiKey: key, another }} />`}</${WithKey}>`;

function Opened({ id, query, apiKey, another }) {
  const path = `/v1/subscriptions/${id}`;
  const load = async (signal) => {
    const { data: subscription } = await getWith(apiKey, path, signal);
    return { subscription, webhook: await webhookOf(path, apiKey, signal) };
  };
  return html`
    <${Heading} title="Subscription" above=${html`<a href=${link("/subscriptions")}>Subscriptions</a>`}>${another}</${Heading}>
    <${Loaded} of=${path} load=${load}>
      ${({ subscription, webhook }, reload) => {
        const changed = ({ message }) => {
          say(message);
          reload();
        };
        const after = query.after ?? Math.max(0, subscription.last_number - PAGE);
        return html`
          <${Card} title="State" actions=${html`<${Curl} path=${path} variable="API_KEY" />`}><${Facts} subscription=${subscription} /></${Card}>
          <${Webhook} ...${{ webhook, path: `${path}/webhook`, apiKey, changed }} />
          <${Card} title="Events" actions=${html`<${Curl} path=${withQuery(`${path}/events`, { after, limit: PAGE })} variable="API_KEY" />`}>
            <${Filters} query=${query} onApply=${(filters) => go(`/subscriptions/${id}`, filters)}>
              <${Field} name="after" label="After number" type="number" min="0" value=${query.after} />
            </${Filters}>
            <${Events} key=${query.after ?? ""} ...${{ path, apiKey, asked: query.after, last: subscription.last_number }} />
          </${Card}>`;
      }}
    </${Loaded}>`;
}

// The webhook of a subscription, null if it has none.
async function webhookOf(path, apiKey, signal) {
  try {
    return (await getWith(apiKey, `${path}/webhook`, signal)).data;
  } catch (fault) {
    if (fault.code === "webhook_not_found") return null;
    throw fault;
  }
}

function Facts({ subscription }) {
  const { complete_to: to } = subscription;
  return html`<dl class="facts">
    <${Fact} name="State"><${State} of=${subscription.state} /></${Fact}>
    <${Fact} name="Network">${NETWORKS[subscription.network_id]}</${Fact}>
    <${Fact} name="Subjects">${number(subscription.subject_count)}</${Fact}>
    <${Fact} name="Confirmations">${number(subscription.confirmations)}</${Fact}>
    <${Fact} name="Last event">${number(subscription.last_number)}</${Fact}>
    <${Fact} name="Complete to">${to ? html`block ${number(to.block_no)}, <${Time} at=${to.block_time} />` : html`<${None} />`}</${Fact}>
    <${Fact} name="Created"><${Time} at=${subscription.created_at} /></${Fact}>
    <${Fact} name="Id"><code>${subscription.id}</code> <${Copy} label="Copy" text=${() => subscription.id} /></${Fact}>
  </dl>`;
}

// The webhook ----------------------------------------------------------------------------------------------------------

class Webhook extends Component {
  state = { secret: null };
  rotated = ({ data }) => this.setState({ secret: data.secret });

  leave = () => {
    this.setState({ secret: null });
    this.props.changed({ message: "Secret replaced" });
  };

  render({ webhook, path, apiKey, changed }, { secret }) {
    if (!webhook) return html`<${Card} title="Webhook"><${Empty} title="No webhook">Its key sets one with <code>PUT ${path}</code>.</${Empty}></${Card}>`;
    const post = (action, body) => ({ method: "POST", path: `${path}/${action}`, body, key: apiKey, variable: "API_KEY" });
    const actions = html`
      <${Curl} path=${path} variable="API_KEY" />
      ${webhook.state !== "ended" && html`<${PauseOrResume} ...${{ webhook, post, changed }} /><${Replay} ...${{ webhook, post, changed }} />`}
      <${Confirm} label="Rotate secret" title="Rotate the secret?" danger=${false} request=${() => post("secret")} onDone=${this.rotated}>
        <p>The webhook gets a new secret. For 24 hours its messages are signed with both, so that the receiver can change over.</p>
      </${Confirm}>`;
    return html`<${Card} title="Webhook" actions=${actions}>
      <dl class="facts">
        <${Fact} name="State"><${State} of=${webhook.state} /></${Fact}>
        <${Fact} name="URL"><${Name}>${webhook.url}</${Name}></${Fact}>
        <${Fact} name="Delivery"><${Progress} webhook=${webhook} /></${Fact}>
        ${webhook.former_secret_until && html`<${Fact} name="Former secret">signs until <${Time} at=${webhook.former_secret_until} /></${Fact}>`}
      </dl>
      <h3>Last attempts</h3>
      <${Attempts} webhook=${webhook} />
      ${secret &&
      html`<${NewKey} title="The new secret of the webhook" apiKey=${secret} what="secret" onClose=${this.leave}
        intro="Store this secret now, where the receiver verifies messages. It is not shown again." />`}
    </${Card}>`;
  }
}

function PauseOrResume({ webhook, post, changed }) {
  if (webhook.state === "active") {
    return html`<${Confirm} label="Pause" title="Pause the webhook?" danger=${false} request=${() => post("pause")} onDone=${changed}>
      <p>No events will be sent until it is resumed. They stay in the log.</p>
    </${Confirm}>`;
  }
  return html`<${Confirm} label="Resume" title="Resume the webhook?" danger=${false} request=${() => post("resume")} onDone=${changed}>
    <p>Event ${number(webhook.delivered_number + 1)} is sent next, at once.</p>
  </${Confirm}>`;
}

function Replay({ webhook, post, changed }) {
  const request = (data) => post("replay", { after: Number(data.get("after")) });
  return html`<${Opener} label="Send again" title="Send events again">
    ${(close) => {
      const done = (answer) => {
        close();
        changed(answer);
      };
      return html`<${Form} label="Send again" request=${request} onCancel=${close} onDone=${done}>
        ${(wrong) => html`
          <p>All events after this number are sent again, each with the id that it had. A number that is not delivered yet skips the events up to it.</p>
          <${Field} name="after" label="After number" type="number" min="0" max=${webhook.last_number} required wrong=${wrong} value=${webhook.delivered_number} />
        `}
      </${Form}>`;
    }}
  </${Opener}>`;
}

// Events ---------------------------------------------------------------------------------------------------------------

// Events after the number that is asked for, or else the last ones; on request, more as they happen. The newest is on top.
class Events extends Component {
  state = { events: null, fault: null, following: false, completeTo: null };

  componentDidMount() {
    this.load();
  }

  componentWillUnmount() {
    this.asked.abort();
    this.source?.close();
  }

  load = async () => {
    const { signal } = (this.asked = new AbortController());
    this.setState({ fault: null });
    try {
      const { data, pagination } = await this.page(signal);
      this.after = pagination.next;
      this.setState({ events: data.reverse(), completeTo: pagination.complete_to });
    } catch (fault) {
      if (!signal.aborted) this.setState({ fault });
    }
  };

  async page(signal) {
    const { path, apiKey, asked, last } = this.props;
    const from = (after) => getWith(apiKey, withQuery(`${path}/events`, { after, limit: PAGE }), signal);
    try {
      return await from(asked ?? Math.max(0, last - PAGE));
    } catch (fault) {
      if (asked || fault.code !== "events_not_kept") throw fault;
      return from(undefined); // fewer are kept: all of them
    }
  }

  follow = async () => {
    const { path, apiKey } = this.props;
    const { signal } = this.asked;
    this.setState({ following: true, fault: null });
    try {
      const { data } = await call("POST", `${path}/tickets`, { key: apiKey, signal });
      if (signal.aborted || !this.state.following) return;
      this.source = new EventSource(withQuery(`${path}/events/stream`, { ticket: data.ticket, after: this.after }));
      for (const action of Object.keys(ACTIONS)) this.source.addEventListener(action, this.told);
      this.source.addEventListener("idle", ({ data: idle }) => this.setState({ completeTo: parsed(idle).complete_to }));
      this.source.addEventListener("refused", this.refused);
      this.source.addEventListener("error", () => this.source.readyState === EventSource.CLOSED && this.end(new Refused("The stream of events has ended")));
    } catch (fault) {
      if (!signal.aborted) this.end(fault);
    }
  };

  told = ({ data }) => {
    const event = parsed(data);
    this.after = event.number;
    this.setState(({ events }) => ({ events: [event, ...events].slice(0, MAX_SHOWN) }));
  };

  // What is not final is over soon, and the browser connects again.
  refused = ({ data }) => {
    const { code, error, final } = parsed(data);
    if (final) this.end(new Refused(error, 0, code));
  };

  end = (fault = null) => {
    this.source?.close();
    this.setState({ following: false, fault });
  };

  render(_, { events, fault, following, completeTo }) {
    const problem = fault && html`<${Fault} fault=${fault}>${!events && html`<button type="button" class="secondary" onClick=${this.load}>Try again</button>`}</${Fault}>`;
    if (!events) return problem ?? html`<p class="loading" role="status">Loading</p>`;
    return html`
      ${problem}
      <div class="line">
        <button type="button" class="secondary" onClick=${following ? () => this.end() : this.follow}>${following ? "Stop" : "Follow"}</button>
        <span class="muted" role="status">${following && "Following: new events appear on top."}</span>
        <span class="muted">${completeTo && `Complete to block ${number(completeTo.block_no)}`}</span>
      </div>
      ${events.length ? html`<${Table} caption="Events" columns=${COLUMNS} rows=${events} keyed=${(each) => each.number} />` : html`<${Empty} title="No events yet" />`}`;
  }
}

const COLUMNS = [
  { name: "Number", cell: (each) => number(each.number) },
  { name: "Action", cell: (each) => html`<${Badge} word=${each.action} kind=${ACTIONS[each.action]} />${each.undoes !== undefined && html` <span class="small">of ${number(each.undoes)}</span>`}` },
  { name: "Kind", cell: (each) => each.kind ?? html`<${None} />` },
  { name: "Block", figures: true, cell: ({ block }) => number(block.block_no) },
  {
    name: "Payload",
    cell: (each) => html`<details><summary>Payload<span class="unseen"> of event ${each.number}</span></summary><${Json} label=${`Payload of event ${each.number}`} text=${JSON.stringify(each, null, 2)} /></details>`,
  },
];
