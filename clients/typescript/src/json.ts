// JSON with exact integers of any size. `JSON.parse` rounds those beyond 2^53 without an error.

/** Where a value has quantities: `true` for one, a list or a map of them; by field for objects and lists of objects. */
export type Quantities = true | { readonly [field: string]: Quantities };

const MAY_BE_INEXACT = /\d{16}/;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g;

/** The value of a JSON text. An integer is a bigint if a number can't hold it exactly. Throws SyntaxError. */
export function read(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return MAY_BE_INEXACT.test(text) ? readExactly(text) : value;
}

/** The same for text that is known to be JSON. */
function readExactly(text: string): unknown {
  const tokens = text.matchAll(TOKEN);
  const next = (): string => tokens.next().value![0];

  function value(token: string): unknown {
    if (token === "{") {
      const fields: Array<[string, unknown]> = [];
      for (let key = next(); key !== "}"; key = next()) {
        if (key !== ",") {
          next(); // the colon
          fields.push([JSON.parse(key), value(next())]);
        }
      }
      return Object.fromEntries(fields);
    }
    if (token === "[") {
      const items: unknown[] = [];
      for (let item = next(); item !== "]"; item = next()) {
        if (item !== ",") items.push(value(item));
      }
      return items;
    }
    const scalar: unknown = JSON.parse(token);
    return Number.isInteger(scalar) && !Number.isSafeInteger(scalar) && /^-?\d+$/.test(token) ? BigInt(token) : scalar;
  }

  return value(next());
}

/** JSON of a value. A bigint is written in full; undefined fields are left out. */
export function write(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map((item) => write(item ?? null)).join()}]`;
  if (value === null || typeof value !== "object" || "toJSON" in value) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${write(field)}`).join()}}`;
}

/** The value with its quantities as bigint, whether they are small or large integers or decimal strings. */
export function withQuantities(value: unknown, where: Quantities): unknown {
  if (value === null || value === undefined) return value;
  if (Array.isArray(value)) return value.map((item) => withQuantities(item, where));
  if (typeof value !== "object") return BigInt(value as number | string | bigint);
  const fields = Object.entries(value).map(([name, field]) => {
    const inside = where === true ? true : where[name];
    return [name, inside === undefined ? field : withQuantities(field, inside)];
  });
  return Object.fromEntries(fields);
}
