// The application: connects the frame, the current view, the keyboard and live events.

import { agent, agents, ask, chooseAgent, firstEvent, inAddress, isShown } from "./api.js";
import { follow, listen, unfollow } from "./events.js";
import { frame } from "./frame.js";
import { LANGUAGES, language, languageName, number, t, useLanguage } from "./i18n.js";
import { help, useKeys } from "./keys.js";
import { countDrafts } from "./drafts.js";
import { announce, ended, failure, hushOld, loading, runOffer, sentence } from "./notices.js";
import { palette } from "./palette.js";
import { fill } from "./dom.js";
import { nextTheme, remember, remembered } from "./prefs.js";
import { addressAgent, amend, go, here, returnToPlace, stepped } from "./router.js";
import { importFiles } from "./views/exchange.js";
import { forgetBy } from "./views/forgetting.js";
import { memoriesView } from "./views/memories.js";
import { addMemory } from "./views/memory_actions.js";
import { notesView } from "./views/notes.js";
import { newNote } from "./views/notes_edit.js";
import { recallsView } from "./views/recalls.js";
import { searchView } from "./views/search.js";

const VIEWS = {
  search: searchView,
  memories: memoriesView,
  notes: notesView,
  recalls: recallsView,
};
// Views that are loaded when they are opened first.
const LATE_VIEWS = {
  about: async () => (await import("./views/about.js")).aboutView,
  changes: async () => (await import("./views/changes.js")).changesView,
  inbox: async () => (await import("./views/inbox.js")).inboxView,
  operate: async () => (await import("./views/operate.js")).operateView,
  health: async () => (await import("./views/health.js")).healthView,
};

const app = document.getElementById("app");
let outer = null;
let view = null;
let shown = "";
let over = false;
let waiting = 0;
let known = [];

function build() {
  outer = frame({ onLanguage: speak, onAgent: switchAgent, onHelp: help });
  outer.agents(known);
  fill(app, outer.node);
  view = null;
}

async function open() {
  if (over) return null;
  const { view: name, unknown } = here();
  if (unknown) announce(t("frame.view.unknown", { name: unknown }));
  if (!view || shown !== name) {
    view?.close?.();
    view = null;
    fill(outer.main);
    if (shown) hushOld();
    shown = name;
    outer.select({ operate: "health", changes: "search" }[shown] ?? shown);
    title();
    scrollTo(0, 0);
    if (!(await isLoaded(name)) || over || here().view !== name) return null;
    view ??= VIEWS[name](outer.main);
  }
  return view.show(here());
}

/** Load a view. Returns false, and shows an error, if that fails. */
async function isLoaded(name) {
  if (VIEWS[name]) return true;
  const place = outer.main;
  fill(place, loading());
  try {
    VIEWS[name] = await LATE_VIEWS[name]();
    return true;
  } catch {
    // A browser remembers that a script failed, so that only a new page loads it again.
    if (here().view === name && place === outer.main) fill(place, failure(null, () => location.reload()));
    return false;
  }
}

// The title shows how many memories wait for approval.
function title() {
  document.title = `${waiting ? `(${waiting}) ` : ""}${t(`view.${shown}`)} · memoriter`;
}

async function moved() {
  const putBack = stepped();
  await (isShown(here().agent) ? open() : followAgent());
  // The focused link may be gone with its view. Focus the new view, so that keys reach it.
  if (document.activeElement === document.body) outer.main.focus({ preventScroll: true });
  putBack();
}

async function speak(name) {
  remember("language", name);
  await useLanguage(name);
  view?.close?.();
  build();
  open();
  count();
}

/** Go to the memory of another agent. Its name is in the address. */
function switchAgent(name) {
  addressAgent(inAddress(name));
  go(shown);
}

/** Use the agent of the address. */
async function followAgent() {
  unfollow();
  chooseAgent(here().agent);
  greeted = false;
  view?.close?.();
  view = null;
  outer.agents(known);
  await open();
  if (!over) follow(agent(), firstEvent()); // the first event loads the counts
}

/** The address names an agent that does not exist. */
function agentUnknown(name) {
  amend(here().view);
  outer.agents(known);
  announce(t("frame.agent.unknown", { name, agent: agent() }));
}

// Counts next to the names of views. They load after the first view is drawn, and again after changes.
async function count() {
  try {
    const facets = await ask("entries.facets");
    const notes = await ask("notes.waiting").catch(() => ({ total: 0 })); // only the owner sees them
    waiting = (facets.states?.staged ?? 0) + notes.total;
    outer.counts(facets, waiting);
    title();
  } catch {
    outer.counts(null); // the view shows the error
  }
}

const COUNT_EVENTS = ["capture", "entries", "notes", "hello"];
const REFRESH_EVENTS = ["sync", "notes", "entries", "capture", "recall"];
let greeted = false;

function happened(events) {
  const hello = events.get("hello");
  if (hello && (greeted || !hello.resumed)) for (const kind of REFRESH_EVENTS) events.set(kind, {}); // events may have been missed while the connection was lost
  greeted ||= Boolean(hello);
  outer.progress(events);
  if (COUNT_EVENTS.some((kind) => events.has(kind)) || events.has("sync")) count();
  view?.refresh?.(events);
}

/** The actions of the palette. Actions of the open view come first. */
function actions() {
  const addMemoryHere = () => addMemory((id) => go("memories", id));
  const others = LANGUAGES.filter((name) => name !== language());
  return [
    ...(view?.actions?.() ?? []),
    { text: t("entry.add"), run: addMemoryHere },
    { text: t("notes.new"), run: () => newNote("memory/", (path) => go("notes", path)) },
    { text: t("import.open"), run: () => importFiles([], () => go("memories")) },
    { text: t("forget.open"), run: () => forgetBy({}, () => {}) },
    { text: t("why.title"), run: async () => (await import("./views/why.js")).whyDialog() },
    { text: t("palette.inbox"), run: () => go("inbox") },
    { text: t("palette.operate"), run: () => go("operate") },
    ...known.filter((one) => one.name !== agent()).map(({ name }) => ({ text: t("palette.agent", { name }), run: () => switchAgent(name) })),
    { text: t("health.sync"), run: sync },
    { text: t("palette.theme"), run: () => nextTheme() },
    ...others.map((name) => ({ text: languageName(name), run: () => speak(name) })),
    { text: t("help.title"), run: help },
  ];
}

async function sync() {
  announce(t("health.syncing"));
  try {
    const { changed = 0, removed = 0, seconds = 0 } = await ask("memory.sync");
    announce(t("health.synced", { changed: number(changed), removed: number(removed), seconds: number(seconds, 1) }));
  } catch (error) {
    announce(error.status === 504 ? t("health.syncing.long") : sentence(error));
  }
}

function finish() {
  if (over) return;
  over = true;
  unfollow();
  view?.close?.();
  document.querySelector("dialog[open]")?.close();
  remember("place", location.hash);
  fill(app, ended(countDrafts()));
}

async function start() {
  await useLanguage(language());
  const place = remembered("place") ?? (remembered("agent") ? `#/search?${new URLSearchParams({ agent: remembered("agent") })}` : "");
  if (!location.hash && place) history.replaceState(history.state, "", place);
  remember("place", null);
  chooseAgent(here().agent);
  countDrafts(); // deletes old ones
  build();
  document.addEventListener("memoriter:ended", finish);
  document.addEventListener("memoriter:refused", () => agents().catch(() => {})); // finds out whether the session has ended
  document.addEventListener("memoriter:agent", (event) => agentUnknown(event.detail));
  document.addEventListener("memoriter:live", () => outer.live());
  addEventListener("hashchange", moved);
  useKeys({
    focusSearch: () => (view?.focusSearch ? view.focusSearch() : go("search")) ?? true,
    go: (name) => go(name),
    help: () => (help(), true),
    palette: () => palette(actions),
    undo: runOffer,
    escape: (event) => view?.escape?.(event) ?? false,
    key: (event) => view?.key?.(event) ?? false,
  });
  listen(happened);
  await open();
  returnToPlace();
  if (over) return;
  const before = agent();
  known = await agents().catch(() => []);
  outer.agents(known);
  if (agent() !== before) return followAgent(); // the guess was the name of another agent
  return follow(agent(), firstEvent()); // the first event loads the counts
}

start();
