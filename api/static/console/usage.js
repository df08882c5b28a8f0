// The usage of an account or a credential: figures, requests over time with the limit, response times, endpoints.
import { get } from "./api.js";
import { Chart } from "./chart.js";
import { Card, Curl, Empty, Figure, Loaded, Table, html } from "./parts.js";
import { PERIODS, Tally, admitted, periodOf } from "./periods.js";
import { link, withQuery } from "./router.js";
import { milliseconds, number, percent } from "./words.js";

const MAX_PARTS = 1000; // of an answer

// Links to the periods, with the current one marked.
export function Periods({ path, query, current }) {
  const marked = (name) => (name === current ? "true" : undefined);
  return html`<nav class="periods" aria-label="Period">
    ${PERIODS.map(([name, words]) => html`<a href=${link(path, { ...query, period: name })} aria-current=${marked(name)}>${words}</a>`)}
  </nav>`;
}

// `breakdown` is the API's path of the breakdown, `limits` are the limits of a credential, `path` is the page's own.
export function Usage({ breakdown, limits = null, path, query }) {
  const current = query.period ?? "month";
  const period = periodOf(current);
  const asked = (groupBy, granularity) => withQuery(breakdown, { start_date: period.start, granularity, group_by: groupBy, limit: MAX_PARTS });
  const load = async (signal) => {
    const lists = [asked("status", period.granularity), asked("none", period.granularity), asked("endpoint_and_status", "month")];
    return (await Promise.all(lists.map((list) => get(list, signal)))).map(({ data }) => data);
  };
  return html`<${Card} title="Usage" actions=${html`<${Curl} path=${asked("status", period.granularity)} />`}>
    <${Periods} path=${path} query=${query} current=${current} />
    <${Loaded} of=${`${breakdown} ${current}`} load=${load}>
      ${([byStatus, percentiles, byEndpoint]) => html`<${Figures} period=${period} byStatus=${byStatus} percentiles=${percentiles} byEndpoint=${byEndpoint} limits=${limits} />`}
    </${Loaded}>
  </${Card}>`;
}

function Figures({ period, byStatus, percentiles, byEndpoint, limits }) {
  const tally = new Tally(period);
  byStatus.forEach((row) => tally.add(row));
  byEndpoint.forEach((row) => tally.addEndpoint(row));
  const { total } = tally;
  const limit = limits && admitted(period, limits);
  const axis = { names: period.names, titles: period.titles };
  return html`
    <${Totals} total=${total}><${Busiest} period=${period} tally=${tally} limit=${limit} /></${Totals}>
    <h3>Requests</h3>
    <${Chart} stacked label=${`Requests in the last ${period.words}: ${number(total.requests)}`} ...${axis} series=${tally.series}
      limit=${limit} limitName=${`Limit per ${period.granularity}`} />
    ${total.requests > 0 &&
    html`<h3>Response times</h3>
      <${Chart} label=${`Response times in the last ${period.words}`} ...${axis} series=${percentileSeries(period, percentiles)} show=${milliseconds} />
      <h3>Endpoints</h3>
      <${Endpoints} rows=${tally.busiest()} total=${total.requests} />`}`;
}

export function Totals({ total, children }) {
  return html`<dl class="figures-row">
    <${Figure} name="Requests" value=${number(total.requests)} />
    <${Figure} name="Client errors" value=${percent(total.client, total.requests)} note=${`${number(total.client)} with status 4xx, including requests over a limit`} />
    <${Figure} name="Server errors" value=${percent(total.server, total.requests)} note=${`${number(total.server)} with status 5xx`} />
    <${Figure} name="Mean response time" value=${total.requests ? milliseconds(total.tookMs / total.requests) : "–"} />
    ${children}
  </dl>`;
}

// The part of the period with the most requests, and their share of the limit.
function Busiest({ period, tally, limit }) {
  const sums = period.names.map((_, place) => tally.series.reduce((sum, { values }) => sum + values[place], 0));
  const most = Math.max(...sums);
  const place = sums.indexOf(most);
  const note = most ? `${period.titles[place]}${limit ? `, ${percent(most, limit[place])} of the limit` : ""}` : "";
  return html`<${Figure} name=${`Busiest ${period.granularity}`} value=${number(most)} note=${note} />`;
}

function percentileSeries(period, rows) {
  const found = new Map(rows.map((row) => [period.places.get(Date.parse(row.period_start)), row]));
  return [["50 %", "p50"], ["95 %", "p95"], ["99 %", "p99"]].map(([share, field]) => ({
    name: `${share} within`,
    token: field,
    values: period.names.map((_, place) => found.get(place)?.[`${field}_response_time_ms`] ?? null),
  }));
}

export function Endpoints({ rows, total }) {
  if (!rows.length) return html`<${Empty} title="No requests in this period" />`;
  return html`<${Table}
    caption="Requests by endpoint"
    keyed=${(row) => row.endpoint}
    rows=${rows}
    columns=${[
      { name: "Endpoint", cell: (row) => html`<code>${row.endpoint}</code>` },
      { name: "Requests", figures: true, cell: (row) => number(row.requests) },
      { name: "Share", figures: true, cell: (row) => percent(row.requests, total) },
      { name: "Errors", figures: true, cell: (row) => percent(row.client + row.server, row.requests) },
      { name: "Mean time", figures: true, cell: (row) => milliseconds(row.tookMs / row.requests) },
    ]}
  />`;
}
