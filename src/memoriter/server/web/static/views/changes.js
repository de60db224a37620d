// What changed: every change of a memory by day, with undo; and the weekly letter. This view is loaded when it is opened first.

import { ask, isAborted, newest } from "../api.js";
import { el, fill, refill } from "../dom.js";
import { clock, dayName, number, t, tn, translated } from "../i18n.js";
import { announce, failure, loading, nothing, sentence } from "../notices.js";
import { choice, dateField, entryLine, fromDateField, segments, when } from "../parts.js";
import { address, go } from "../router.js";
import { forgetMemories } from "./forgetting.js";
import { deletedNote } from "./home.js";
import { shortened } from "./memory_actions.js";
import { wordDifference } from "./memory_history.js";
import { peekPanel } from "./peek.js";

const KINDS = ["add", "stage", "update", "supersede", "merge", "approve", "reject", "forget", "expire", "import", "undo"];
const WRITERS = ["owner", "agent", "capture", "extract", "tidy", "cleanup"];
const WEEK_DAYS = 7;

export function changesView(main) {
  const get = newest();
  let filters = {};
  let form = "days";
  let next = null;
  const bar = el("div", { class: "filters" });
  const place = el("div", { class: "about" });
  const split = el(
    "div",
    { class: "split" },
    el("div", { class: "split-list" }, el("header", { class: "view-head" }, el("h1", {}, t("view.changes"))), bar, place),
  );
  const peek = peekPanel(main, split);
  fill(main, split);

  const put = (name, value) => go("changes", form === "letter" ? "letter" : "", { ...filters, [name]: value });

  function drawBar() {
    const forms = [
      ["days", t("changes.days")],
      ["letter", t("changes.letter")],
    ];
    const date = (name) =>
      el("label", { class: "inline" }, t(`filter.${name}`), el("input", { type: "date", "data-filter": name, value: filters[name] ?? "", onchange: (event) => put(name, event.target.value) }));
    fill(
      bar,
      segments(t("view.changes"), forms, form, (name) => go("changes", name === "letter" ? "letter" : "")),
      form === "days" && [
        choice([["", t("changes.kind")], ...KINDS.map((name) => [name, t(`event.${name}`)])], filters.kind ?? "", (value) => put("kind", value), { "aria-label": t("changes.kind"), "data-filter": "kind" }),
        choice([["", t("changes.by")], ...WRITERS.map((name) => [name, t(`who.${name}`)])], filters.by ?? "", (value) => put("by", value), { "aria-label": t("changes.by"), "data-filter": "by" }),
        date("since"),
        date("until"),
      ],
    );
  }

  async function load({ more = false, quiet = more } = {}) {
    if (!quiet) fill(place, loading());
    try {
      if (form === "letter") return refill(place, letter(await get("letter.get", { days: WEEK_DAYS })));
      const given = {
        kind: filters.kind,
        by: filters.by,
        since: fromDateField(filters.since),
        until: fromDateField(filters.until, { end: true }),
        before: more ? next : null,
      };
      const wanted = Object.fromEntries(Object.entries(given).filter(([, value]) => value));
      const answer = await get("changes.list", wanted);
      next = answer.next;
      if (answer.changes.length + answer.deleted.length === 0 && !more) return fill(place, nothing(t("changes.none")));
      const button = next && el("button", { type: "button", class: "quiet more", onclick: () => load({ more: true }) }, t("do.more"));
      if (!more) refill(place, answer.deleted.length > 0 && removed(answer.deleted), days(answer.changes), button);
      else append(days(answer.changes, place), button);
      return peek.mark();
    } catch (error) {
      if (isAborted(error)) return null;
      return fill(place, failure(error, () => load()));
    }
  }

  /** Show the next changes in place of the button. The first of them gets its focus. */
  function append(nodes, button) {
    const shown = place.querySelectorAll(".row").length;
    place.querySelector(".more").replaceWith(...nodes, button ?? "");
    place.querySelectorAll(".row")[shown]?.focus();
  }

  const removed = (notes) =>
    el(
      "section",
      { class: "recent", "data-section": "deleted" },
      el("h2", {}, t("changes.deleted")),
      el("p", { class: "faint" }, t("changes.deleted.hint")),
      el("div", { class: "lines" }, notes.map((note) => deletedNote(note, () => load({ quiet: true })))),
    );

  /** The changes of each day. A day that `shown` contains already continues there. */
  function days(changes, shown = null) {
    const nodes = [];
    for (const change of changes) {
      const day = dateField(change.at);
      let list = nodes.at(-1)?.dataset.day === day ? nodes.at(-1).lastChild : shown?.querySelector(`[data-day="${day}"] ol`);
      if (!list) {
        list = el("ol", { class: "history" });
        nodes.push(el("section", { "data-day": day }, el("h2", {}, dayName(day)), list));
      }
      list.append(item(change));
    }
    return nodes;
  }

  function item(change) {
    const [first] = change.events;
    const undo = async () => {
      try {
        await ask("entries.undo", { id: first.entryId, ifSeq: change.seq });
        announce(t("changes.undone", { what: shortened(first.after ?? first.before ?? "") }));
      } catch (error) {
        announce(sentence(error));
      }
      load({ quiet: true });
    };
    const canUndo = change.newest && !["add", "undo"].includes(first.kind);
    return el(
      "li",
      { "data-id": String(change.number) },
      el(
        "p",
        {},
        el("b", {}, t(`event.${first.kind}`)),
        " ",
        el("span", { class: "faint" }, t("entry.by", { who: t(`who.${first.by}`) }), " · ", clock(change.at)),
        " ",
        canUndo && el("button", { type: "button", class: "link", "data-do": "undo", onclick: undo }, t("do.undo")),
      ),
      change.events.map((event) =>
        event.before && event.after && event.before !== event.after
          ? el("div", {}, wordDifference(event.before, event.after), el("a", { class: "row", href: address("memories", event.entryId) }, t("changes.open")))
          : el("p", {}, el("a", { class: "row", href: address("memories", event.entryId) }, event.after ?? event.before)),
      ),
      first.note && !["undo", "redo", "import"].includes(first.kind) && el("p", { class: "faint" }, translated(first.note)),
    );
  }

  function letter(found) {
    const week = address("changes", "", { since: dateField(found.since) });
    const part = (key, items, draw, { total = items.length, all = week, more = null } = {}) =>
      el(
        "section",
        { class: "panel-section", "data-section": key },
        el("h2", {}, t(`letter.${key}`), " ", el("span", { class: "faint" }, number(total))),
        items.length > 0 ? el("ul", { class: "plain-list" }, items.map((one) => el("li", {}, draw(one)))) : el("p", { class: "faint" }, t("letter.nothing")),
        total > items.length && el("p", {}, el("a", { href: all }, t("home.all"))),
        more,
      );
    const save = () => {
      const link = el("a", { download: `letter-${dateField(found.until)}.md` });
      link.href = URL.createObjectURL(new Blob([found.markdown], { type: "text/markdown" }));
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    };
    const forget = found.forget.length > 0 && el("button", { type: "button", class: "quiet danger-text", "data-do": "forget", onclick: () => forgetProposed(found.forget) }, t("letter.forget.all"));
    return [
      el("p", { class: "lead" }, t("letter.lead", { from: dayName(dateField(found.since)), to: dayName(dateField(found.until)) })),
      el("p", { class: "counts" }, tn("recall.found", found.recalls), " · ", el("a", { href: address("inbox") }, t("frame.staged", { n: number(found.waiting) }))),
      part("learned", found.learned, (one) => entryLine(one, when(one.createdAt)), { total: found.learnedTotal }),
      part("changed", found.changed, (one) => [entryLine(one.entry), wordDifference(one.before, one.entry.text)], { total: found.changedTotal }),
      part("retired", found.retired, (one) => entryLine(one, when(one.updatedAt)), { total: found.retiredTotal }),
      part("unused", found.neverUsed, (one) => entryLine(one, when(one.createdAt)), { total: found.neverUsedTotal, all: address("memories", "", { used: "no" }) }),
      part("forget", found.forget, (one) => [el("a", { class: "row", href: address("memories", one.id) }, one.text), " ", el("span", { class: "faint" }, translated(one.why))], { more: forget }),
      el("p", {}, el("button", { type: "button", class: "quiet", onclick: save }, t("letter.save"))),
    ];
  }

  async function forgetProposed(proposed) {
    try {
      const found = await Promise.all(proposed.map(({ id }) => ask("entries.get", { id })));
      forgetMemories(found.map((one) => one.entry), () => load());
    } catch (error) {
      announce(sentence(error));
    }
  }

  return {
    async show(route) {
      const wanted = Object.fromEntries(["kind", "by", "since", "until"].map((name) => [name, route.params.get(name) ?? ""]));
      const shape = route.id === "letter" ? "letter" : "days";
      const same = shape === form && JSON.stringify(wanted) === JSON.stringify(filters);
      peek.show(route);
      if (same && place.hasChildNodes()) return;
      filters = wanted;
      form = shape;
      drawBar();
      await load();
    },
    refresh: () => peek.refresh(),
    actions: () => peek.actions(),
    key: (event) => peek.key(event),
    escape: () => peek.escape(),
    close: () => (get.stop(), peek.close()),
  };
}
