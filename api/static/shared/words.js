// How the pages write figures, times and names.

export const NETWORKS = ["Mainnet", "Preview", "Preprod"];

export const number = (value) => value.toLocaleString("en");
export const counted = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

// A duration: in milliseconds with three significant digits, from 10 s on in whole seconds.
export function milliseconds(value) {
  if (value >= 10_000) return `${number(Math.round(value / 1000))} s`;
  return `${value.toLocaleString("en", { maximumSignificantDigits: 3 })} ms`;
}

// How far a work has come, from 0 to 1, rounded down: 100 % means that nothing is left.
export const progress = (share) => `${(Math.floor(share * 10_000) / 100).toFixed(2)} %`;

// A share of a whole. A tiny share is shown as < 0.01 %, never as 0 %.
export function percent(part, whole) {
  if (!part || !whole) return "0 %";
  const share = (100 * part) / whole;
  return share < 0.01 ? "< 0.01 %" : `${share.toLocaleString("en", { maximumFractionDigits: share < 10 ? 2 : 1 })} %`;
}

export function bytes(value) {
  return value < 1024 ? counted(value, "byte") : `${(value / 1024).toLocaleString("en", { maximumFractionDigits: 1 })} KiB`;
}

// A time in the reader's own zone, and in UTC.
export const local = (iso) => new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
export const utc = (iso) => `${new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC" })} UTC`;

const UNITS = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3_600], ["minute", 60]];
const SHORT_UNITS = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];

// Seconds in at most two units, on one line.
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const first = SHORT_UNITS.findIndex(([, size]) => whole >= size);
  if (first < 0) return "0\u00a0s";
  const [[unit, size], [next, nextSize] = []] = SHORT_UNITS.slice(first);
  const rest = next ? Math.floor((whole % size) / nextSize) : 0;
  return [number(Math.floor(whole / size)), unit, ...(rest ? [rest, next] : [])].join("\u00a0");
}

// How long ago a time was, or how far off it is, in one unit.
export function distance(iso, now = Date.now()) {
  const seconds = (Date.parse(iso) - now) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? [];
  if (!unit) return seconds > 0 ? "in a moment" : "just now";
  return new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.trunc(seconds / size), unit);
}

// "user_account.created" as a person would say it.
export function actionName(action) {
  const [target, verb] = action.split(".");
  const nouns = { user_account: "account", credential: "credential", admin_key: "admin key" };
  const words = `${nouns[target] ?? target} ${verb ?? ""}`.trim();
  return words[0].toUpperCase() + words.slice(1);
}

// JSON text with line breaks and indents. It is never parsed, so each number keeps its digits.
export function pretty(json) {
  let depth = 0;
  let last = "";
  let out = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of json.matchAll(/"(?:\\.|[^"\\])*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    const opened = last === "{" || last === "[";
    if (closes ? !opened : opened || last === ",") out += line();
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth += 1;
    last = token;
  }
  return out;
}
