// The first page: all requests of a partner, its busiest accounts and endpoints, and keys that expire soon.
import { download, get, rows } from "./api.js";
import { Chart } from "./chart.js";
import { Ago, Card, Curl, Empty, Heading, Loaded, Name, Table, html, say } from "./parts.js";
import { Tally, periodOf } from "./periods.js";
import { link, withQuery } from "./router.js";
import { Endpoints, Periods, Totals } from "./usage.js";
import { NETWORKS, milliseconds, number, percent } from "./words.js";

// No endpoint returns the sums over all accounts, so the page adds up the export, unless it has more lines than this.
const MAX_LINES = 200_000;
const SOON_DAYS = 30;

export function Overview({ query }) {
  const current = query.period ?? "month";
  const period = periodOf(current);
  const exported = (format) => withQuery("/v1/admin/usage/export", { start_date: period.start, granularity: period.granularity, format });
  const save = () => download(exported("csv"), `usage-${current}.csv`).catch((fault) => say(`${fault.message}.`));
  return html`
    <${Heading} title="Overview"><${Periods} path="/" query=${query} current=${current} /></${Heading}>
    <${Card} title="Requests" actions=${html`<button type="button" class="quiet" onClick=${save}>Save as CSV</button><${Curl} path=${exported("csv")} />`}>
      <${Loaded} of=${current} load=${(signal) => added(period, exported("ndjson"), signal)}>
        ${(tally) =>
          tally
            ? html`<${Figures} tally=${tally} />`
            : html`<${Empty} title="Too much to add up here">Choose a shorter period, or save the figures as CSV.</${Empty}>`}
      </${Loaded}>
    </${Card}>
    <div class="columns">
      <${BusiestAccounts} period=${period} of=${current} />
      <${EndingSoon} />
    </div>`;
}

// The sums of an export, or null if it is too long.
async function added(period, path, signal) {
  const tally = new Tally(period);
  let lines = 0;
  for await (const row of rows(path, signal)) {
    if ((lines += 1) > MAX_LINES) return null;
    tally.add(row);
    tally.addEndpoint(row);
  }
  return tally;
}

function Figures({ tally }) {
  const { period } = tally;
  return html`
    <${Totals} total=${tally.total} />
    <${Chart} stacked label=${`Requests in the last ${period.words}: ${number(tally.total.requests)}`} names=${period.names} titles=${period.titles} series=${tally.series} />
    <h3>Endpoints</h3>
    <${Endpoints} rows=${tally.busiest()} total=${tally.total.requests} />`;
}

function BusiestAccounts({ period, of }) {
  const path = withQuery("/v1/admin/users/usage/summary", { start_date: period.start, limit: 5 });
  return html`<${Card} title="Busiest accounts" actions=${html`<${Curl} path=${path} />`}>
    <${Loaded} of=${of} load=${(signal) => get(path, signal)}>
      ${({ data }) =>
        data.length
          ? html`<${Table}
              caption="Busiest accounts"
              keyed=${(row) => row.user_account_id}
              rows=${data}
              columns=${[
                { name: "Account", cell: (row) => html`<a href=${link(`/accounts/${row.user_account_id}`)}><${Name}>${row.user_name}</${Name}></a>` },
                { name: "Requests", figures: true, cell: (row) => number(row.total_requests) },
                { name: "Errors", figures: true, cell: (row) => percent(row.failed_requests, row.total_requests) },
                { name: "Mean time", figures: true, cell: (row) => (row.total_requests ? milliseconds(row.avg_response_time_ms) : "–") },
              ]}
            />`
          : html`<${Empty} title="No accounts yet">Create one for your first customer under <a href=${link("/accounts")}>Accounts</a>.</${Empty}>`}
    </${Loaded}>
  </${Card}>`;
}

function EndingSoon() {
  const path = withQuery("/v1/admin/credentials", { expires_within: SOON_DAYS, limit: 5 });
  return html`<${Card} title="Keys that expire soon" actions=${html`<${Curl} path=${path} />`}>
    <${Loaded} of=${path} load=${(signal) => get(path, signal)}>
      ${({ data }) =>
        data.length
          ? html`<${Table}
              caption=${`Credentials that expire within the next ${SOON_DAYS} days`}
              rows=${data}
              columns=${[
                { name: "Credential", cell: (row) => html`<a href=${link(`/credentials/${row.id}`)}><${Name}>${row.name}</${Name}></a>` },
                { name: "Account", cell: (row) => html`<${Name}>${row.user_account_name}</${Name}>` },
                { name: "Network", cell: (row) => NETWORKS[row.network_id] },
                { name: "Expires", figures: true, cell: (row) => html`<${Ago} at=${row.expires_at} />` },
              ]}
            />`
          : html`<${Empty} title="None">No keys expire within the next ${SOON_DAYS} days.</${Empty}>`}
    </${Loaded}>
  </${Card}>`;
}
