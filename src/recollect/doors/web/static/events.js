// What happens while the page is open, as the gateway tells it. Listeners are told kinds; they ask for the rest.

const KINDS = ["hello", "sync", "progress", "capture", "recall", "entries", "notes"];
const GATHER_MS = 150; // a sync of many files is one refresh

let source = null;
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
  source?.close();
  source = new EventSource(`/v1/events?agent=${encodeURIComponent(agent)}`);
  source.addEventListener("open", () => alive(true));
  source.addEventListener("error", () => alive(false)); // the browser tries again by itself
  for (const kind of KINDS) source.addEventListener(kind, (event) => gather(kind, event.data));
}

export function unfollow() {
  source?.close();
  source = null;
}

function alive(now) {
  if (live === now) return;
  live = now;
  document.dispatchEvent(new CustomEvent("recollect:live"));
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
