// One memory: its source, history, related memories, and the prompts it was used in.

import { ask, isAborted, news, newest } from "../api.js";
import { el, enter, fill, icon, refill } from "../dom.js";
import { number, sentences, t, tn } from "../i18n.js";
import { announce, failure, loading, sentence } from "../notices.js";
import { entryLine, facts, invisibleWarning, label, stars, tags, when } from "../parts.js";
import { address, go } from "../router.js";
import { forgetMemories } from "./forgetting.js";
import { editMemory, settleStaged, supersedeMemory, undoChange } from "./memory_actions.js";
import { sourceName } from "./memory_filters.js";
import { history, wordDifference } from "./memory_history.js";
import { transcript } from "./notes_text.js";

const LINES_BEFORE = 4;
const LINES_AROUND = 9;
const MAX_SAME = 5; // other memories of the same conversation
const MAX_QUERY = 300; // characters

export function memoryPanel(aside, { close, changed, forgotten }) {
  const get = newest();
  const isNew = news();
  let id = "";
  let shown = null;
  let opening = false; // until it is drawn; a live event may repeat the request

  async function load({ quiet = false } = {}) {
    opening ||= !quiet;
    if (!quiet) fill(aside, loading());
    try {
      shown = await get("entries.get", { id });
      if (isNew(shown) || opening) draw();
      if (opening) enter(aside);
      opening = false;
    } catch (error) {
      if (isAborted(error)) return;
      opening = false;
      isNew.forget();
      fill(
        aside,
        bar(),
        failure(error, () => load()),
      );
    }
  }

  function bar(...buttons) {
    return el(
      "div",
      { class: buttons.length > 0 ? "panel-bar" : "panel-bar bare" },
      el(
        "button",
        { type: "button", class: "plain", "aria-label": t("do.close"), onclick: close },
        icon("close"),
      ),
      buttons,
    );
  }

  function draw() {
    const entry = shown.entry;
    const replaced = new Set(shown.supersedes.map((one) => one.id)); // shown in their own section
    const from = entry.state === "staged" && shown.provenance?.transcript;
    const last = shown.history.at(-1);
    const proposed = entry.state === "staged" && last?.kind === "stage" && last.before;
    const near = shown.related.filter((one) => !replaced.has(one.id));
    refill(
      aside,
      bar(...buttons(entry)),
      invisibleWarning(entry.text, ...(entry.tags ?? []), entry.session),
      proposed && el("p", { class: "warning", role: "note" }, t("entry.proposed")),
      el("h2", { class: "statement", ...long(entry.text) }, entry.text || t("entry.forgotten.text")),
      el(
        "p",
        { class: "labels" },
        label("type", entry.type),
        stars(entry.importance),
        label("state", entry.state),
        tags(entry.tags),
      ),
      entry.state === "staged" && el("p", { class: "writer" }, sentences(t("entry.writer", { who: sourceName(entry.source ?? "tool") }), t(`entry.waits.${entry.trust}`))),
      from && section("entry.conversation", el("div", { class: "conversation" }, loading())),
      section("entry.history", history(shown.history)),
      shown.supersededBy &&
        section(
          "entry.supersededBy",
          el("a", { href: address("memories", shown.supersededBy) }, t("entry.newer")),
        ),
      shown.supersedes.length > 0 &&
        section(
          "entry.supersedes",
          shown.supersedes.map((one) => [entryLine(one), wordDifference(one.text, entry.text)]),
        ),
      section("entry.provenance", provenance(entry, shown)),
      near.length > 0 &&
        section(
          "entry.related",
          near.map((one) => entryLine(one)),
        ),
      entry.session && el("div", { class: "same-session" }),
      section("entry.recalls", recalls(shown.recalls)),
    );
    if (from) conversationAround(aside.querySelector(".conversation"), from);
    if (entry.session) sameSession(entry);
  }

  function buttons(entry) {
    const button = (key, act, kind = "quiet", title = null) =>
      el("button", { type: "button", class: kind, "data-do": key, title, onclick: act }, t(`do.${key}`));
    if (entry.state === "forgotten") return [];
    if (entry.state === "staged")
      return [
        button("approve", () => settle("approve"), "primary"),
        button("reject", () => settle("reject")),
        button("edit.approve", () => editMemory(entry, changed, { approve: true, back: changed })),
        forgetting(button, entry),
      ];
    return [
      entry.state === "active" && button("edit", () => editMemory(entry, changed)),
      entry.state === "active" && button("supersede", () => supersedeMemory(entry, changed)),
      undoing(button, entry),
      button("like", () => go("search", "", { q: entry.text.slice(0, MAX_QUERY), in: "entries" })),
      forgetting(button, entry),
    ];
  }

  async function settle(how) {
    const { id: shownId } = shown.entry;
    try {
      await settleStaged(how, [shownId], changed);
      changed();
    } catch (error) {
      announce(sentence(error));
      load({ quiet: true });
    }
  }

  /** Other memories of the same conversation. */
  async function sameSession({ id: own, session }) {
    const place = aside.querySelector(".same-session");
    try {
      const states = ["active", "staged", "superseded"];
      const { entries, total } = await ask("entries.list", { session, states, limit: MAX_SAME + 1 });
      const others = entries.filter((one) => one.id !== own).slice(0, MAX_SAME);
      if (others.length === 0 || shown?.entry.id !== own) return;
      const all = total - 1 > others.length && el("p", {}, el("a", { href: address("memories", "", { session, state: "all" }) }, t("entry.same.all")));
      fill(place, section("entry.same", others.map((one) => entryLine(one, one.state !== "active" && label("state", one.state))), all));
    } catch {
      // the panel is complete without them
    }
  }

  // A memory that was only added has nothing to undo. To remove it, forget it.
  const undoing = (button, entry) => {
    const inEffect = []; // each undo cancels the change before it that was in effect then
    for (const event of shown.history) event.kind === "undo" ? inEffect.pop() : inEffect.push(event);
    const last = inEffect.at(-1);
    if (!last || (inEffect.length === 1 && shown.supersedes.length === 0)) return null;
    const undo = () =>
      undoChange(entry, changed).catch((error) => {
        announce(sentence(error));
        load({ quiet: true }); // the change of another client is shown, and can be undone
      });
    return button("undo", undo, "quiet", t("do.undo.what", { what: t(`event.${last.kind}`) }));
  };

  const forgetting = (button, entry) =>
    button("forget", () => forgetMemories([entry], forgotten), "quiet danger-text");

  return {
    show(wanted) {
      if (wanted === id && shown) return;
      id = wanted;
      shown = null;
      opening = false;
      get.stop();
      if (id) load();
      else fill(aside);
    },
    /** The buttons of the panel, as actions of the palette. */
    actions: () => [...aside.querySelectorAll(".panel-bar [data-do]")].map((one) => ({ text: one.textContent, run: () => one.click() })),
    reload: () => id && load({ quiet: true }),
    refresh: () => id && load({ quiet: true }),
    key(event) {
      const staged = { a: () => settle("approve"), r: () => settle("reject"), e: () => editMemory(shown.entry, changed, { approve: true, back: changed }) };
      const keys = { active: { e: () => editMemory(shown.entry, changed) }, staged }[shown?.entry.state];
      if (!keys?.[event.key]) return false;
      keys[event.key]();
      return true;
    },
    stop: () => get.stop(),
  };
}

/** Show the lines of the conversation around the one that a waiting memory comes from. */
export async function conversationAround(place, { path, line }) {
  try {
    const from = Math.max(1, (line ?? 1) - LINES_BEFORE);
    const text = await ask("notes.get", { path, from, lines: LINES_AROUND });
    fill(place, el("p", {}, el("a", { class: "transcript", href: address("notes", path, line ? { from: line, to: line } : {}) }, line ? `${path}:${line}` : path)), transcript(text.text, text.from));
    place.querySelector(`[data-from="${line}"]`)?.classList.add("lit");
  } catch {
    (place.closest(".panel-section") ?? place).remove(); // the transcript was removed
  }
}

// A long text scrolls in place, so that its details stay visible.
const long = (text) => (text.length > 400 ? { class: "statement long", tabindex: "0" } : {});

function section(name, ...children) {
  return el("section", { class: "panel-section" }, el("h3", {}, t(name)), children);
}

function provenance(entry, { provenance: from }) {
  const transcript = from?.transcript;
  const place =
    transcript &&
    address("notes", transcript.path, transcript.line ? { from: transcript.line, to: transcript.line } : {});
  return facts([
    [
      t("entry.trust"),
      [["relayed", "untrusted"].includes(entry.trust) && label("trust", entry.trust), ` ${t(`trust.${entry.trust}.why`)}`],
    ],
    [
      t("entry.session"),
      entry.session && el("a", { href: address("memories", "", { session: entry.session }) }, entry.session),
    ],
    [
      t("entry.transcript"),
      transcript &&
        el(
          "a",
          { class: "transcript", href: place },
          transcript.line ? `${transcript.path}:${transcript.line}` : transcript.path,
        ),
    ],
    [t("entry.source"), entry.source && sourceName(entry.source)],
    [t("entry.created"), when(entry.createdAt)],
    [
      t("entry.updated"),
      entry.updatedAt && entry.updatedAt !== entry.createdAt ? when(entry.updatedAt) : null,
    ],
    [t("entry.expires"), entry.expiresAt ? when(entry.expiresAt) : t("entry.never")],
    [t("entry.confidence"), Number.isFinite(entry.confidence) ? `${number(entry.confidence * 100)} %` : null],
    [t("entry.repetitions"), entry.repetitions > 1 ? tn("count.times", entry.repetitions) : null],
    [t("entry.used"), entry.accessCount ? tn("count.times", entry.accessCount) : null],
    [t("entry.id"), el("code", {}, entry.id)],
  ]);
}

function recalls(found) {
  if (found.length === 0) return el("p", { class: "faint" }, t("entry.recalls.none"));
  return el(
    "ul",
    { class: "plain-list" },
    found.map((recall) =>
      el(
        "li",
        {},
        el("a", { href: address("recalls", recall.id) }, recall.query || t("recall.noQuery")),
        " ",
        el("span", { class: "faint" }, t(`interface.${recall.interface}`), " · ", when(recall.at)),
      ),
    ),
  );
}
