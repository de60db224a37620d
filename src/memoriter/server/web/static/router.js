// The current place, in the hash of the address: `#/memories/ID?type=fact&agent=work`. It also restores scroll and focus when the
// reader goes back.

export const VIEWS = ["search", "inbox", "memories", "about", "notes", "recalls", "health", "operate", "changes"];
/** The views of the navigation. */
export const MAIN_VIEWS = VIEWS.slice(0, -2);

let agentName = ""; // the agent in the addresses of this page; empty: the default agent

/** The place in the address. `agent` is empty for the default agent. */
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...rest] = path.split("/");
  const id = rest.map(decoded).join("/");
  const params = new URLSearchParams(query);
  const agent = params.get("agent") ?? "";
  params.delete("agent");
  const known = VIEWS.includes(view);
  return { view: known ? view : "search", id, params, agent, unknown: known ? "" : view };
}

/** Put an agent into every address that is made from now on, so that a link and a reload show its memory. */
export function addressAgent(name) {
  agentName = name;
}

/** The address of a place. Parameters without a value are left out. */
export function address(view, id = "", params = {}) {
  const given = Object.entries({ ...params, agent: agentName }).filter(
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

/** Change the address without a new step in the history, for example while the reader types. */
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

const left = new Map(); // step → scroll position and focus when the reader left it
let now = named();

history.scrollRestoration = "manual"; // the browser would restore it before the view is drawn

const STOPPED_MS = 150;
let stopped = 0;

// A reload finds its place in the history. A long list remembers its rows instead (rows.js).
addEventListener(
  "scroll",
  () => {
    clearTimeout(stopped);
    const step = now;
    stopped = setTimeout(() => step === now && history.replaceState({ ...history.state, top: scrollY }, ""), STOPPED_MS);
  },
  { passive: true },
);

/** Scroll to where the reader was before a reload. */
export function returnToPlace() {
  const { top, anchor } = history.state ?? {};
  if (top && !anchor) scrollTo(0, top);
}

/** Call it when the address has changed, before drawing. It returns a function that restores scroll and focus, unless the
 *  reader types or points at something in the meantime. */
export function stepped() {
  const reading = new AbortController();
  for (const act of ["input", "pointerdown"]) addEventListener(act, () => reading.abort(), { capture: true, signal: reading.signal });
  left.set(now, { top: scrollY, href: document.activeElement?.getAttribute("href") });
  const known = left.get(history.state?.step);
  now = named();
  const here = now;
  return () => {
    const acted = reading.signal.aborted;
    reading.abort();
    if (acted || !known || here !== now) return;
    if (!history.state?.anchor) scrollTo(0, known.top);
    if (known.href) document.querySelector(`main a[href="${CSS.escape(known.href)}"]`)?.focus({ preventScroll: true });
  };
}

function named() {
  const step = history.state?.step ?? `${Date.now()}-${left.size}`;
  history.replaceState({ ...history.state, step }, "");
  return step;
}
