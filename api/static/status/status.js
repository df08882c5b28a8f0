// The page at /status: asks /v1/status every few seconds and shows the answer. Ages keep counting between answers.
import { Ago, Badge, Card, Fact, html } from "./parts.js";
import { Plot, axis, bars, colour } from "./plot.js";
import { Component, render } from "./preact.mjs";
import { NETWORKS, counted, duration, number, progress } from "./words.js";

const ASK_EVERY_MS = 3000;
const ANSWER_WITHIN_MS = 10000;
const MINUTES = 60;
const HEIGHT = 110;
// From these ages on, a lock and a snapshot are told, as in /ready.
const LONG_LOCK_WAIT_S = 3;
const OLD_SNAPSHOT_S = 60;

// The name and the severity of each state of a network.
const STATES = {
  in_step: ["In step", "good"],
  syncing: ["Syncing", "busy"],
  split: ["Chain split", "bad"],
  behind: ["Behind", "bad"],
  node_stalled: ["Node stalled", "bad"],
  node_lost: ["Node lost", "bad"],
  down: ["Indexer down", "bad"],
  empty: ["Nothing indexed", "busy"],
  retired: ["Retired", "off"],
};
const SIGNS = { good: "✓", busy: "…", bad: "!", off: "–" };

// Parts ---------------------------------------------------------------------------------------------------------------

// A time: `ageS` is its age in seconds when the answer arrived, and `passed` are the seconds since then.
function Moment({ at, ageS, passed }) {
  return html`<${Ago} at=${at} words=${`${duration(ageS + passed)} ago`} />`;
}

// How far the index is behind the node, and whether it waits for a lock instead of following.
function Behind({ network }) {
  const waits = network.lag_slots > 0 && network.lock_wait_s >= LONG_LOCK_WAIT_S;
  return html`${network.lag_blocks === null ? "unknown" : `${counted(network.lag_blocks, "block")}, ${duration(network.lag_s)}`}
    ${waits && html`; <strong class="bad">waiting for a lock in the database for ${duration(network.lock_wait_s)}</strong>`}`;
}

// The blocks of the last hour, per minute.
function Chart({ blocks, label }) {
  const plotted = () => ({
    data: [blocks.map((_, index) => index - MINUTES), blocks],
    cursor: { show: false },
    scales: { x: { time: false, range: [-MINUTES - 0.5, -0.5] }, y: { range: (_, __, most) => [0, Math.max(most, 4)] } },
    axes: [
      { ...axis(), grid: { show: false }, size: 28, gap: 10, splits: () => [-60, -45, -30, -15, -1], values: (_, at) => at.map((m) => (m === -1 ? "now" : `${m} min`)) },
      { ...axis(), grid: { show: false }, size: 32, incrs: [1, 2, 5, 10, 50, 100, 500] },
    ],
    series: [{}, { fill: colour("ok"), width: 0, points: { show: false }, paths: bars({ size: [0.8, 20] }) }],
  });
  return html`<${Plot} label=${label} height=${HEIGHT} plotted=${plotted} of=${[blocks.join()]} />`;
}

function Sync({ network, name }) {
  const share = network.sync_progress;
  if (share === null || !["syncing", "behind"].includes(network.state)) return null;
  if (network.phase === "finishing") return html`<p>All blocks have been read, and the indexes are being built.</p>`;
  const left = network.sync_left_s === null ? "time left unknown" : `about ${duration(network.sync_left_s)} left`;
  return html`<div class="sync">
    <progress value=${share} max="1" aria-label=${`Sync of ${name}`}></progress>
    <p>${progress(share)}, ${left}</p>
  </div>`;
}

function Rollback({ network, passed, at }) {
  if (network.last_rollback_at === null) return "none seen";
  const age = (Date.parse(at) - Date.parse(network.last_rollback_at)) / 1000;
  return html`${counted(network.last_rollback_blocks, "block")}, <${Moment} at=${network.last_rollback_at} ageS=${age} passed=${passed} />`;
}

function Verify({ network, passed, at }) {
  const last = network.last_verify;
  if (last === null) return "never run";
  const age = (Date.parse(at) - Date.parse(last.ended_at)) / 1000;
  const outcome = last.differing.length ? html`<strong class="bad">differences in ${last.differing.join(", ")}</strong>` : "no differences";
  const node = last.node_blocks === null ? "" : `; ${counted(last.node_blocks, "block")} compared with the node`;
  return html`${outcome} up to block ${number(last.block_no)}${node}, <${Moment} at=${last.ended_at} ageS=${age} passed=${passed} />`;
}

// What the indexer compared with its node's ledger in the last epoch, with the differences by name.
function Comparison({ network }) {
  const kinds = network.last_comparison;
  if (!kinds.length) return "not yet";
  const values = kinds.reduce((sum, each) => sum + each.compared, 0);
  const differing = kinds.filter((each) => each.differing);
  const scope = `${counted(values, "value")} of ${counted(kinds.length, "kind")} in epoch ${number(kinds[0].epoch_no)}`;
  if (!differing.length) return `no differences in ${scope}`;
  return html`<strong class="bad">differences</strong> in ${scope}
    <ul class="differences">
      ${differing.map((kind) => html`<li>${kind.kind}: ${number(kind.differing)} of ${number(kind.compared)}
        <dl>${kind.differences.map((each) => html`<dt><code>${each.name}</code></dt><dd>here: ${each.ours}</dd><dd>on the node: ${each.node}</dd>`)}</dl>
      </li>`)}
    </ul>`;
}

// The states of several nodes, by their place in the settings.
function Nodes({ nodes }) {
  return nodes.map((node, index) => html`${index ? ", " : ""}${node.number}: ${node.state.replaceAll("_", " ")}`);
}

// A split of the chain: since when, after which block, and both tips.
function Split({ split }) {
  const since = split.common ? `after block ${number(split.common.block_no)}` : "from the start";
  return html`<p><strong class="bad">The chain has split.</strong> Node ${split.node} has another one ${since},
    seen since <${Ago} at=${split.noticed_at} words=${new Date(split.noticed_at).toLocaleString()} />.
    Here: block ${number(split.our_tip.block_no)}, <code>${split.our_tip.block_hash}</code>.
    There: block ${number(split.node_tip.block_no)}, <code>${split.node_tip.block_hash}</code>.</p>`;
}

// The facts about a network that has blocks.
function Index({ network, name, passed, at }) {
  const { blocks, transactions } = network.last_hour;
  const total = blocks.reduce((sum, each) => sum + each, 0);
  const label = `Blocks of ${name} in the last hour: ${number(total)}, from ${number(Math.min(...blocks))} to ${number(Math.max(...blocks))} per minute`;
  return html`
    <dl class="facts">
      <${Fact} name="Tip">block ${number(network.block_no)}, epoch ${number(network.epoch_no)}, slot ${number(network.slot_no)}</${Fact}>
      <${Fact} name="Time of the tip"><${Moment} at=${network.block_time} ageS=${network.tip_age_s} passed=${passed} /></${Fact}>
      <${Fact} name="Behind the node"><${Behind} network=${network} /></${Fact}>
      ${network.nodes.length > 0 && html`<${Fact} name="Nodes"><${Nodes} nodes=${network.nodes} /></${Fact}>`}
      <${Fact} name="Last rollback"><${Rollback} network=${network} passed=${passed} at=${at} /></${Fact}>
      <${Fact} name="Last verify"><${Verify} network=${network} passed=${passed} at=${at} /></${Fact}>
      <${Fact} name="Compared with the node"><${Comparison} network=${network} /></${Fact}>
      <${Fact} name="Indexed from">${network.first_block_no > 0 ? `block ${number(network.first_block_no)}` : "the origin"}</${Fact}>
      <${Fact} name="Blocks in the last hour">${number(total)}, with ${counted(transactions, "transaction")}</${Fact}>
    </dl>
    ${total > 0 && html`<${Chart} blocks=${blocks} label=${label} />`}`;
}

function Network({ network, passed, at }) {
  const name = NETWORKS[network.network_id];
  const [word, kind] = STATES[network.state];
  return html`<${Card} tag="article" title=${name} actions=${html`<${Badge} word=${word} kind=${kind} sign=${SIGNS[kind]} />`}>
    ${network.splits.map((split) => html`<${Split} key=${split.node} split=${split} />`)}
    <${Sync} network=${network} name=${name} />
    ${network.block_no === null ? html`<p>Nothing is indexed yet.</p>` : html`<${Index} network=${network} name=${name} passed=${passed} at=${at} />`}
  </${Card}>`;
}

function Usage({ usage }) {
  return html`<${Card} title="Usage">
    <dl class="facts">
      <${Fact} name="Queue">${usage.queued === null ? html`<strong class="bad">not available, usage waits on disk</strong>` : counted(usage.queued, "batch", "batches")}</${Fact}>
      <${Fact} name="Lag">${usage.lag_s === null ? "unknown" : duration(usage.lag_s)}</${Fact}>
      ${usage.oldest_snapshot_s > OLD_SNAPSHOT_S && html`<${Fact} name="Database">
        a session has held a snapshot for ${duration(usage.oldest_snapshot_s)}, which slows it down; all requests are counted
      </${Fact}>`}
    </dl>
  </${Card}>`;
}

// A summary of all networks; screen readers read it out when it changes.
function summary(status) {
  const served = status.networks.filter((network) => network.state !== "retired");
  if (!served.length) return "No network is indexed yet.";
  const good = served.filter((network) => network.state === "in_step");
  if (good.length === served.length) return served.length === 1 ? `${NETWORKS[served[0].network_id]} is in step.` : "All networks are in step.";
  return served
    .filter((network) => network.state !== "in_step")
    .map((network) => `${NETWORKS[network.network_id]}: ${STATES[network.state][0].toLowerCase()}.`)
    .join(" ");
}

// The page ------------------------------------------------------------------------------------------------------------

class Page extends Component {
  state = { status: null, answeredAt: 0, now: 0, fault: null, paused: false };

  componentDidMount() {
    this.ask();
    this.ticking = setInterval(() => this.setState({ now: performance.now() }), 1000);
  }

  componentWillUnmount() {
    clearInterval(this.ticking);
    clearTimeout(this.next);
  }

  async ask() {
    clearTimeout(this.next);
    try {
      const response = await fetch("/v1/status", { signal: AbortSignal.timeout(ANSWER_WITHIN_MS), cache: "no-store" });
      const body = await response.json();
      if (!body.success) throw new Error(body.error);
      const now = performance.now();
      this.setState({ status: body.data, answeredAt: now, now, fault: null });
    } catch (fault) {
      this.setState({ fault: fault instanceof TypeError || fault.name === "TimeoutError" ? "The service is not answering" : fault.message });
    }
    if (!this.state.paused) this.next = setTimeout(() => this.ask(), ASK_EVERY_MS);
  }

  pause = () => {
    const paused = !this.state.paused;
    this.setState({ paused });
    if (paused) clearTimeout(this.next);
    else this.ask();
  };

  render(_, { status, answeredAt, now, fault, paused }) {
    const passed = Math.max(0, now - answeredAt) / 1000;
    return html`
      <main id="main" tabindex="-1">
        <div class="heading">
          <h1>Status</h1>
          <p role="status" class="muted">${fault ? `${fault}.` : status ? summary(status) : "Contacting the service."}</p>
        </div>
        ${fault && status && html`<p class="bad"><strong>The figures below are ${duration(passed)} old.</strong></p>`}
        ${status && html`
          <div class="columns">
            ${status.networks.map((network) => html`<${Network} key=${network.network} network=${network} passed=${passed} at=${status.at} />`)}
          </div>
          <${Usage} usage=${status.usage} />`}
        <div class="line">
          <button type="button" class="secondary" onClick=${this.pause}>${paused ? "Resume updates" : "Pause updates"}</button>
          <p class="small">${status && html`Version ${status.version}, schema ${status.schema_version}. `}<a href="/v1/status">These figures as JSON</a></p>
        </div>
      </main>`;
  }
}

const page = document.getElementById("page");
page.replaceChildren();
render(html`<${Page} />`, page);
