// Where the reader is: `#/memories/ID?type=fact`. The place is in the hash, so the server needs to know one page only.

export const VIEWS = ["search", "memories", "notes", "recalls", "map", "health"];

/** The place as the address says it. */
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...rest] = path.split("/");
  const id = rest.map(decoded).join("/");
  return { view: VIEWS.includes(view) ? view : "search", id, params: new URLSearchParams(query) };
}

/** The address of a place; parameters without a value are left out. */
export function address(view, id = "", params = {}) {
  const given = Object.entries(params).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const place = id ? `${view}/${id.split("/").map(encodeURIComponent).join("/")}` : view;
  return `#/${place}${query ? `?${query}` : ""}`;
}

/** Go to a place. */
export function go(view, id = "", params = {}) {
  const target = address(view, id, params);
  if (location.hash !== target) location.hash = target;
}

/** Say in the address what is shown, without a step in the history for every letter that is typed. */
export function amend(view, id = "", params = {}) {
  history.replaceState(history.state, "", address(view, id, params));
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
