// Periods of usage: the last day, week, month or year, and the hours, days or months (UTC) that they are made of.

const PARTS = {
  day: { granularity: "hour", count: 24, words: "24 hours" },
  week: { granularity: "day", count: 7, words: "7 days" },
  month: { granularity: "day", count: 30, words: "30 days" },
  year: { granularity: "month", count: 12, words: "12 months" },
};

export const PERIODS = Object.entries(PARTS).map(([name, { words }]) => [name, words]);

// A period that ends now: its first instant, its parts with their first instants, lengths in minutes, and names.
export function periodOf(name, now = new Date()) {
  const { granularity, count, words } = PARTS[name] ?? PARTS.month;
  const starts = Array.from({ length: count + 1 }, (_, index) => partOf(granularity, now, index - count + 1));
  const parts = starts.slice(0, count);
  return {
    granularity,
    words,
    start: parts[0].toISOString(),
    minutes: parts.map((start, index) => (starts[index + 1] - start) / 60_000),
    places: new Map(parts.map((start, index) => [start.getTime(), index])),
    names: parts.map((start) => start.toLocaleString("en-GB", NAMES[granularity])),
    titles: parts.map((start) => start.toLocaleString("en-GB", TITLES[granularity]) + (granularity === "hour" ? "" : " (UTC)")),
  };
}

// Hours are shown in the reader's zone; days and months are in UTC, as in the API.
const NAMES = {
  hour: { hour: "2-digit", minute: "2-digit" },
  day: { day: "numeric", month: "short", timeZone: "UTC" },
  month: { month: "short", timeZone: "UTC" },
};
const TITLES = {
  hour: { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
  day: { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" },
  month: { month: "long", year: "numeric", timeZone: "UTC" },
};

// The first instant of a part: the one that is `after` parts later than the part that contains `time`.
function partOf(granularity, time, after) {
  const [year, month, day, hour] = [time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate(), time.getUTCHours()];
  if (granularity === "month") return new Date(Date.UTC(year, month + after));
  if (granularity === "day") return new Date(Date.UTC(year, month, day + after));
  return new Date(Date.UTC(year, month, day, hour + after));
}

// Adds up rows of a breakdown or an export.
export class Tally {
  total = { requests: 0, client: 0, server: 0, tookMs: 0 };
  endpoints = new Map(); // like `total`, by endpoint

  constructor(period) {
    this.period = period;
    const nothing = () => period.names.map(() => 0);
    // Stacked series of a chart, the lowest first.
    this.series = [
      { name: "Successful", token: "ok", values: nothing() },
      { name: "Client errors", token: "client", values: nothing() },
      { name: "Server errors", token: "server", values: nothing() },
    ];
  }

  add(row) {
    const place = this.period.places.get(Date.parse(row.period_start));
    if (place === undefined) return;
    this.series[{ "4xx": 1, "5xx": 2 }[row.status_class] ?? 0].values[place] += row.total_requests;
    addTo(this.total, row);
  }

  addEndpoint(row) {
    if (!this.endpoints.has(row.endpoint)) this.endpoints.set(row.endpoint, { endpoint: row.endpoint, requests: 0, client: 0, server: 0, tookMs: 0 });
    addTo(this.endpoints.get(row.endpoint), row);
  }

  // The busiest endpoints first.
  busiest() {
    return [...this.endpoints.values()].sort((one, other) => other.requests - one.requests);
  }
}

function addTo(sum, row) {
  sum.requests += row.total_requests;
  sum.tookMs += row.total_requests * row.avg_response_time_ms;
  if (row.status_class === "4xx") sum.client += row.total_requests;
  if (row.status_class === "5xx") sum.server += row.total_requests;
}

// The maximum number of requests that the limits of a credential admit in each part of a period.
export function admitted(period, { rate_limit_per_minute: rate, quota }) {
  return period.minutes.map((minutes) => {
    const quotas = quota ? quota.requests * Math.max(1, quota.per === "day" ? minutes / 1440 : 1) : Infinity;
    return Math.min(rate * minutes, quotas);
  });
}
