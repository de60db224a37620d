// The inbox: everything that waits for the owner, one card at a time. Memories and notes of agents, and changes that tidying
// proposes. This view is loaded when it is opened first.

import { agent, ask, isAborted, newest } from "../api.js";
import { ask as dialog } from "../dialogs.js";
import { el, fill, refill } from "../dom.js";
import { form } from "../forms.js";
import { number, t, translated } from "../i18n.js";
import { rendered } from "../markdown.js";
import { announce, failure, loading, sentence } from "../notices.js";
import { entryLine, facts, field, invisibleWarning, label, pathName, stars, tags, when } from "../parts.js";
import { address, amend } from "../router.js";
import { editMemory, mergeMemories, settleStaged, shortened } from "./memory_actions.js";
import { sourceName } from "./memory_filters.js";
import { wordDifference } from "./memory_history.js";
import { conversationAround } from "./memory.js";
import { FRONT_MATTER, decideNote } from "./waiting.js";

const MAX_CARDS = 200;
const KEEP = "keep"; // the tag of memories that tidying no longer proposes to change
const KEYS = { a: "approve", r: "reject", e: "edit", l: "later", j: "later", k: "before" };

export function inboxView(main) {
  const get = newest();
  const getWaiting = newest();
  const getProposals = newest();
  let turn = Promise.resolve(); // decisions and their undo, one after the other
  let items = null; // the cards; null until they are loaded
  let proposals = [];
  const firsts = new Map(); // the older memory of each proposal: an undo makes it the newer one
  let total = 0;
  let open = ""; // the id of the card that is shown
  const count = el("p", { class: "summary", role: "status", "aria-live": "polite" });
  const place = el("div", { class: "inbox" });
  const all = el("a", { href: address("memories", "", { state: "staged" }) }, t("inbox.table"));
  fill(main, el("header", { class: "view-head" }, el("h1", {}, t("view.inbox")), count, all), place);

  async function load({ quiet = false } = {}) {
    if (!quiet) fill(place, loading());
    try {
      getWaiting.stop(); // an older answer must not be shown after a newer one
      const listed = await get("entries.list", { states: ["staged"], limit: MAX_CARDS });
      const waiting = await getWaiting("notes.waiting");
      total = listed.total + waiting.total;
      put([
        ...listed.entries.map((entry) => ({ kind: "entry", id: entry.id, entry })),
        ...waiting.notes.map((note) => ({ kind: "note", id: note.path, note })),
      ]);
    } catch (error) {
      if (!isAborted(error)) fill(place, failure(error, () => load()));
    }
  }

  /** Load what tidying proposes. It takes longer than the rest, and is not needed for it. */
  async function propose() {
    const found = await getProposals("inbox.proposals").catch((error) => !isAborted(error) && { proposals: [] });
    if (!found) return; // a newer question is under way
    proposals = found.proposals.map(({ kind, entries, why }) => {
      const id = entries.map((entry) => entry.id).sort().join("+");
      const first = firsts.get(id) ?? entries[0].id;
      firsts.set(id, first);
      return { kind: "proposal", id, problem: kind, entries: entries.sort((one, other) => (other.id === first) - (one.id === first)), why };
    });
    if (items) put(items.filter((item) => item.kind !== "proposal"));
  }

  /** Show these cards and the proposals. The open card stays open; after its decision, the one in its place is next. */
  function put(waiting) {
    const later = new Map((items ?? []).map((item) => [item.id, item.later]));
    const at = Math.max(0, items?.findIndex((item) => item.id === open) ?? 0);
    const known = [...waiting, ...proposals].map((item) => ({ ...item, later: later.get(item.id) ?? 0 }));
    items = known.sort((one, other) => one.later - other.later); // the order is otherwise kept
    show(items.find((item) => item.id === open) ?? items[Math.min(at, items.length - 1)]);
  }

  function show(item) {
    const same = place.firstChild?.dataset?.id === item?.id && place.firstChild?.dataset?.seq === seqOf(item);
    open = item?.id ?? "";
    amend("inbox", open);
    const at = items.indexOf(item);
    fill(count, item && t("inbox.place", { n: number(at + 1), total: number(total + proposals.length) }));
    if (!item) return fill(place, empty());
    if (same) return null;
    const waitsFocus = place.contains(document.activeElement) || document.activeElement === document.body;
    const card = el("article", { class: "inbox-card", "data-id": item.id, "data-seq": seqOf(item), "data-kind": item.kind, tabindex: "-1" }, CARDS[item.kind](item), buttons(item));
    refill(place, card);
    if (waitsFocus) card.focus({ preventScroll: true });
    return item.kind === "entry" && more(item.entry, card);
  }

  const seqOf = (item) => String(item?.entry?.seq ?? item?.note?.version ?? "");
  const shown = () => items?.find((item) => item.id === open);

  // ---- cards ----------------------------------------------------------------------------------------------------------

  const CARDS = {
    entry: ({ entry }) => [
      el("p", { class: "labels" }, label("type", entry.type), stars(entry.importance), tags(entry.tags)),
      invisibleWarning(entry.text, ...(entry.tags ?? []), entry.session),
      el("h2", { class: "statement" }, entry.text),
      el("div", { class: "inbox-change", role: "status" }),
      facts([
        [t("inbox.writer"), t("inbox.writer.of", { who: sourceName(entry.source ?? "tool"), agent: agent() })],
        [t("entry.created"), when(entry.createdAt)],
        [t("inbox.why"), el("span", { class: "why-waits" }, t(`entry.waits.${entry.trust}`))],
      ]),
      el("div", { class: "conversation" }),
    ],
    note: ({ note }) => [
      el("p", { class: "labels" }, el("a", { class: "row", href: address("notes", note.path) }, pathName(note.path))),
      invisibleWarning(note.path, note.text),
      el("div", { class: "prose note-words", tabindex: "0" }, rendered(note.text.replace(FRONT_MATTER, ""))),
      facts([
        [t("inbox.writer"), t("inbox.writer.of", { who: sourceName(note.source), agent: agent() })],
        [t("entry.created"), when(note.mtime)],
        [t("inbox.why"), el("span", { class: "why-waits" }, t("inbox.waits"))],
      ]),
    ],
    proposal: ({ problem, entries, why }) => [
      el("h2", {}, t(`inbox.${entries.length > 1 ? problem : "forget"}`)),
      entries.map((entry, index) => [entryLine(entry, when(entry.createdAt)), index > 0 && wordDifference(entries[0].text, entry.text)]),
      facts([
        [t("inbox.writer"), t("who.tidy")],
        [t("inbox.why"), el("span", { class: "why-waits" }, translated(why))],
      ]),
    ],
  };

  /** Add to a card what its approval would change, and where it was said. */
  async function more(entry, card) {
    const [detail, foreseen] = await Promise.all([
      ask("entries.get", { id: entry.id }).catch(() => null),
      ask("inbox.foresee", { id: entry.id }).catch(() => null),
    ]);
    if (!card.isConnected || !detail) return;
    const last = detail.history.at(-1);
    if (last?.kind === "stage" && last.before) {
      fill(card.querySelector(".inbox-change"), el("p", { class: "warning" }, t("entry.proposed")));
      card.querySelector("[data-do=approve]").firstChild.data = t("inbox.keep");
      card.querySelector("[data-do=reject]").firstChild.data = t("do.forget");
    } else if (foreseen) {
      const { action, entries, why } = foreseen;
      const changes = entries.map((one) => [
        el("a", { class: "row", href: address("memories", one.id) }, one.text),
        action !== "repeat" && wordDifference(one.text, entry.text),
      ]);
      fill(card.querySelector(".inbox-change"), el("p", { "data-action": action }, el("b", {}, t(`inbox.would.${action}`)), " ", el("span", { class: "faint" }, translated(why))), changes);
    }
    const said = detail.provenance?.transcript;
    if (said) await conversationAround(card.querySelector(".conversation"), said);
  }

  function buttons(item) {
    const isPair = item.kind === "proposal" && item.entries.length > 1;
    const names = {
      approve: t(item.kind !== "proposal" ? "do.approve" : isPair ? "inbox.keep.newer" : "do.forget"),
      reject: t(item.kind !== "proposal" ? "do.reject" : isPair ? "inbox.keep.both" : "inbox.keep"),
      edit: t(isPair ? "do.merge" : item.kind === "proposal" ? "do.edit" : "do.edit.approve"),
      later: t("inbox.later"),
    };
    const key = (name) => Object.keys(KEYS).find((one) => KEYS[one] === name);
    const one = ([name, text]) =>
      el(
        "button",
        { type: "button", class: name === "approve" ? "primary" : "quiet", "data-do": name, "aria-keyshortcuts": key(name), onclick: () => decide(name) },
        text,
        el("kbd", { "aria-hidden": "true" }, key(name).toUpperCase()),
      );
    return el("div", { class: "inbox-actions" }, Object.entries(names).map(one));
  }

  function empty() {
    return el(
      "div",
      { class: "nothing done" },
      el("h2", {}, t("inbox.empty")),
      el("p", { class: "faint" }, t("inbox.empty.how")),
      el("p", {}, el("a", { href: address("changes") }, t("view.changes")), " · ", el("a", { href: address("changes", "letter") }, t("changes.letter"))),
    );
  }

  // ---- decisions ------------------------------------------------------------------------------------------------------

  /** Show the cards again; `id` is the one to open. */
  async function again(id = open) {
    open = id ?? open;
    await load({ quiet: true });
  }

  /** Run an action after those before it. */
  function inTurn(act) {
    turn = turn.then(act);
    return turn;
  }

  /** Decide the card that is shown now. A second key for the same card does nothing. */
  async function decide(how) {
    const item = shown();
    if (!item) return null;
    if (how === "later" || how === "before") return step(item, how);
    return inTurn(async () => {
      const now = items.find((one) => one.id === item.id);
      if (!now) return;
      try {
        await DECISIONS[now.kind](how, now);
      } catch (error) {
        announce(sentence(error));
        await again();
      }
    });
  }

  function step(item, how) {
    const at = items.indexOf(item);
    if (how === "before") return at > 0 && show(items[at - 1]);
    item.later = Math.max(...items.map((one) => one.later)) + 1;
    items = [...items.slice(0, at), ...items.slice(at + 1), item];
    return show(items[Math.min(at, items.length - 1)]);
  }

  const DECISIONS = {
    async entry(how, { entry }) {
      if (how === "edit") return editMemory(entry, () => again(), { approve: true, back: again });
      await settleStaged(how, [entry.id], again);
      return again();
    },
    async note(how, { note }) {
      if (how === "edit") return editNote(note);
      return noted(how, note, await decideNote(how, note));
    },
    async proposal(how, item) {
      const [first] = item.entries;
      if (how === "edit") return (item.entries.length > 1 ? mergeMemories(item.entries, settle) : editMemory(first, settle));
      if (how === "reject") return keep(item);
      const made = await ask("about.change", { places: [{ ref: first.id, text: first.text }], name: "" });
      announce(t("inbox.forgotten", { text: shortened(first.text) }), t("do.undo"), () => undo(item, () => ask("about.undo", { entry: made.entry, seq: made.seq, files: made.files })));
      return settle();
    },
  };

  function noted(how, note, back) {
    announce(t(`inbox.${how}.note`, { name: note.path }), t("do.undo"), () => undo({ id: note.path, note }, back));
    return again();
  }

  /** Keep what tidying proposed to change: a tag says so, and can be removed. */
  async function keep(item) {
    const made = [];
    for (const entry of item.entries) made.push((await ask("entries.edit", { id: entry.id, tags: [...entry.tags, KEEP], ifSeq: entry.seq })).entry);
    const back = async () => {
      for (const { id, seq } of made) await ask("entries.undo", { id, ifSeq: seq });
    };
    announce(t("inbox.kept", { name: nameOf(item) }), t("do.undo"), () => undo(item, back));
    return settle();
  }

  /** A proposal was decided: ask what is proposed now. */
  async function settle() {
    proposals = proposals.filter((item) => item.id !== open);
    await again();
    return propose();
  }

  const nameOf = (item) => item.note?.path ?? shortened(item.entries[0].text);

  function undo(item, act) {
    const { kind, id } = item;
    return inTurn(async () => {
      const failed = await act().catch((error) => error);
      if (kind === "proposal") await propose();
      await again(id);
      announce(failed instanceof Error ? sentence(failed) : t("inbox.undone", { name: nameOf(item) }));
    });
  }

  function editNote(note) {
    const key = `note.waiting.${note.path}`;
    const fillIn = (body, close) => {
      const text = el("textarea", { rows: "12", required: true, value: note.text, class: "note-source" });
      text.autofocus = true;
      const save = async () => {
        const made = await ask("notes.put", { path: note.path, text: text.value, version: note.version });
        const back = await decideNote("approve", { ...note, version: made.version });
        close();
        await noted("approve", note, back);
      };
      body.append(form([field(t("notes.text"), text)], t("do.approve"), save, close, { draft: { key } }));
    };
    dialog(t("do.edit.approve"), fillIn, { wide: true, draft: key });
  }

  return {
    async show(route) {
      if (items && route.id === open) return;
      open = route.id;
      await load();
      propose();
    },
    refresh(events) {
      if (["entries", "capture", "notes"].some((kind) => events.has(kind))) load({ quiet: true });
    },
    key(event) {
      if (!KEYS[event.key] || !shown()) return false;
      decide(KEYS[event.key]);
      return true;
    },
    actions: () => [...place.querySelectorAll("[data-do]")].map((one) => ({ text: one.firstChild.data, run: () => one.click() })),
    close: () => [get, getWaiting, getProposals].forEach((one) => one.stop()),
  };
}
