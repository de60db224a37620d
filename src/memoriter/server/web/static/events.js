// What happens while the page is open, as the gateway tells it. Listeners are told kinds; they ask for the rest.

const KINDS = ["hello", "sync", "progress", "capture", "recall", "entries", "notes"];
const GATHER_MS = 150; // a sync of many files is one refresh

const AGAIN_MS = 5000;

let source = null;
let again = 0;
let waiting = new Map();
let timer = 0;
const listeners = new Set();
let live = false;

/** Be told of kinds and their newest data, gathered; gives back a way to stop. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function isLive() {
  return live;
}

/** Follow one agent; an earlier one is let go. */
export function follow(agent) {
  unfollow();
  source = new EventSource(`/v1/events?agent=${encodeURIComponent(agent)}`);
  source.addEventListener("open", () => alive(true));
  source.addEventListener("error", () => lost(agent));
  for (const kind of KINDS) source.addEventListener(kind, (event) => gather(kind, event.data));
}

// A lost connection the browser makes again by itself; one that was refused is ours to try again.
function lost(agent) {
  alive(false);
  if (source?.readyState !== EventSource.CLOSED) return;
  document.dispatchEvent(new CustomEvent("memoriter:refused"));
  clearTimeout(again);
  again = setTimeout(() => follow(agent), AGAIN_MS);
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
    // An event without data still says that something happened.
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
