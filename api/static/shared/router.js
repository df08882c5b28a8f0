// The current place in a page: the part of the address after #, such as #/accounts?search=acme&offset=20. Filters are kept
// there, so that back, reload and sharing work; keys never are.

// The path's segments, and its query as an object.
export function here() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  return { segments: path.split("/").filter(Boolean), query: Object.fromEntries(new URLSearchParams(query)) };
}

// A link to a page; empty values are left out.
export const link = (path, query = {}) => `#${withQuery(path, query)}`;

export function go(path, query = {}) {
  location.hash = link(path, query);
}

export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
}
