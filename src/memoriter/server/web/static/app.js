// Joins the parts: the frame, the view that the address names, keys, live events. What a view shows is its own.

import { agent, agents, ask, chooseAgent } from "./api.js";
import { follow, listen, unfollow } from "./events.js";
import { frame } from "./frame.js";
import { help } from "./help.js";
import { language, t, useLanguage } from "./i18n.js";
import { useKeys } from "./keys.js";
import { ended, takeUp } from "./notices.js";
import { fill } from "./dom.js";
import { go, here } from "./router.js";
import { stepped } from "./steps.js";
import { healthView } from "./views/health.js";
import { mapView } from "./views/map.js";
import { memoriesView } from "./views/memories.js";
import { notesView } from "./views/notes.js";
import { recallsView } from "./views/recalls.js";
import { searchView } from "./views/search.js";

const VIEWS = {
  search: searchView,
  memories: memoriesView,
  notes: notesView,
  recalls: recallsView,
  map: mapView,
  health: healthView,
};

const app = document.getElementById("app");
let outer = null;
let view = null;
let shown = "";
let over = false;
let known = [];

function build() {
  outer = frame({ onLanguage: speak, onAgent: switchAgent, onHelp: help });
  outer.agents(known);
  fill(app, outer.node);
  view = null;
}

function open() {
  if (over) return Promise.resolve();
  const route = here();
  if (!view || shown !== route.view) {
    view?.close?.();
    fill(outer.main);
    shown = route.view;
    view = VIEWS[shown](outer.main);
    outer.select(shown);
    document.title = `${t(`view.${shown}`)} · memoriter`;
    scrollTo(0, 0);
  }
  return view.show(route);
}

async function moved() {
  const putBack = stepped();
  await open();
  // A view that was left by its own link takes the focus along; keys then speak to the view.
  if (document.activeElement === document.body) outer.main.focus({ preventScroll: true });
  putBack();
}

function speak(name) {
  useLanguage(name);
  view?.close?.();
  build();
  open();
  count();
}

function switchAgent(name) {
  chooseAgent(name);
  greeted = false;
  view?.close?.();
  view = null;
  if (here().id) go(shown);
  open();
  count();
  follow(agent());
}

// Counts beside the names of views. They come after the first view has painted, and again when something changes.
async function count() {
  try {
    outer.counts(await ask("entries.facets"));
  } catch {
    outer.counts(null); // the view itself says what is wrong
  }
}

const COUNTED = ["capture", "entries", "hello"];
const MISSED = ["sync", "notes", "entries", "capture", "recall"];
let greeted = false;

function happened(events) {
  if (events.has("hello") && greeted) for (const kind of MISSED) events.set(kind, {}); // nobody told while it was lost
  greeted ||= events.has("hello");
  outer.progress(events);
  if (COUNTED.some((kind) => events.has(kind)) || events.has("sync")) count();
  view?.refresh?.(events);
}

function finish() {
  if (over) return;
  over = true;
  unfollow();
  view?.close?.();
  document.querySelector("dialog[open]")?.close();
  fill(app, ended());
}

async function start() {
  useLanguage(language());
  build();
  document.addEventListener("memoriter:ended", finish);
  document.addEventListener("memoriter:refused", () => agents().catch(() => {})); // which says whether all is over
  document.addEventListener("memoriter:live", () => outer.live());
  addEventListener("hashchange", moved);
  useKeys({
    focusSearch: () => (view?.focusSearch ? view.focusSearch() : go("search")) ?? true,
    go: (name) => go(name),
    help: () => (help(), true),
    undo: takeUp,
    escape: (event) => view?.escape?.(event) ?? false,
    key: (event) => view?.key?.(event) ?? false,
  });
  listen(happened);
  await open();
  if (over) return;
  known = await agents().catch(() => []);
  outer.agents(known);
  follow(agent()); // its greeting brings the counts
}

start();
