// Live events of the gateway. Listeners receive the kinds of events and request the data themselves.

const KINDS = ["hello", "sync", "progress", "capture", "recall", "entries", "notes"];
const GATHER_MS = 150; // collects events, so that a sync of many files is one refresh

const AGAIN_MS = 5000;

let source = null;
let again = 0;
let waiting = new Map();
let timer = 0;
const listeners = new Set();
let live = false;

/** Register a listener for collected events, by kind with their newest data. Returns a function that removes it. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function isLive() {
  return live;
}

/** Follow the events of one agent instead of the one before, from the event with this id on. */
export function follow(agent, after) {
  unfollow();
  source = new EventSource(`/v1/events?${new URLSearchParams({ agent, after })}`);
  source.addEventListener("open", () => alive(true));
  source.addEventListener("error", () => lost(agent, after));
  for (const kind of KINDS) source.addEventListener(kind, (event) => gather(kind, event.data));
}

// The browser restores a lost connection automatically. A refused one must be retried here.
function lost(agent, after) {
  alive(false);
  if (source?.readyState !== EventSource.CLOSED) return;
  document.dispatchEvent(new CustomEvent("memoriter:refused"));
  clearTimeout(again);
  again = setTimeout(() => follow(agent, after), AGAIN_MS);
}

export function unfollow() {
  clearTimeout(again);
  source?.close();
  source = null;
}

function alive(now) {
  if (live === now) return;
  live = now;
  document.dispatchEvent(new CustomEvent("memoriter:live"));
}

function gather(kind, text) {
  let data = {};
  try {
    data = JSON.parse(text);
  } catch {
    // An event without data still counts.
  }
  waiting.set(kind, data);
  if (!timer) timer = setTimeout(tell, GATHER_MS);
}

function tell() {
  const happened = waiting;
  waiting = new Map();
  timer = 0;
  for (const listener of [...listeners]) listener(happened);
}
