// Everything about one thing: a person, a place, a project, a topic. Without a name, the things that recur. This view is
// loaded when it is opened first.

import { ask, isAborted, news, newest } from "../api.js";
import { el, enter, fill, marked, refill } from "../dom.js";
import { addWords, moment, number, t, tn, translated } from "../i18n.js";
import { step } from "../keys.js";
import { announce, failure, loading, nothing, sentence } from "../notices.js";
import { entryLine, label, when } from "../parts.js";
import { address, go } from "../router.js";
import { ABOUT_WORDS } from "./about_words.js";
import { changeEverywhere, joinName } from "./about_change.js";
import { wordDifference } from "./memory_history.js";
import { peekPanel } from "./peek.js";

addWords(ABOUT_WORDS);

export function aboutView(main) {
  const get = newest();
  const isNew = news();
  let name = "";
  let shown = null;
  const input = el("input", {
    type: "search",
    class: "query",
    "aria-label": t("about.name"),
    placeholder: t("about.name"),
    autocomplete: "off",
    dir: "auto",
    onkeydown: (event) => {
      if (event.key === "Enter" && !event.isComposing && input.value.trim()) go("about", input.value.trim());
    },
  });
  const place = el("div", { class: "about" });
  const split = el(
    "div",
    { class: "split" },
    el("div", { class: "split-list" }, el("header", { class: "view-head" }, el("h1", {}, t("view.about"))), input, place),
  );
  const peek = peekPanel(main, split);
  fill(main, split);

  async function load({ quiet = false } = {}) {
    if (!quiet) fill(place, loading());
    try {
      const answer = name ? await get("about.get", { name }) : await get("about.list");
      if (!isNew([name, answer]) && quiet) return;
      shown = answer;
      refill(place, name ? thing(answer) : things(answer.things));
      peek.mark();
    } catch (error) {
      if (isAborted(error)) return;
      isNew.forget();
      fill(place, failure(error, () => load()));
    }
  }

  function things(known) {
    if (known.length === 0) return nothing(t("about.none"), el("p", { class: "faint" }, t("about.none.how")));
    const item = (one) =>
      el(
        "li",
        {},
        el(
          "a",
          { class: "row thing", href: address("about", one.name), "data-id": one.name },
          el("span", {}, [one.name, ...one.aliases].join(" / ")),
          el("span", { class: "faint" }, one.kind !== "name" && `${t(`thing.${one.kind}`)} · `, number(one.count)),
        ),
      );
    return [el("p", { class: "faint" }, t("about.lead")), el("ul", { class: "things" }, known.map(item))];
  }

  function thing(found) {
    const names = [found.name, ...found.aliases];
    const places = found.entries.length + found.older.length + found.notes.length + found.conversations.length;
    if (places === 0 && found.recalls.length === 0)
      return nothing(t("about.nothing", { name: found.name }), el("p", {}, el("a", { href: address("about") }, t("about.all"))));
    const act = (kind) => () => changeEverywhere(kind, found, () => load({ quiet: true }));
    return [
      el(
        "header",
        { class: "view-head" },
        el("h2", {}, names.join(" / ")),
        el("button", { type: "button", class: "quiet", "data-do": "join", onclick: () => joinName(found.name, () => load({ quiet: true })) }, t("about.join")),
        places > 0 && el("button", { type: "button", class: "quiet", "data-do": "correct", onclick: act("correct") }, t("about.correct")),
        places > 0 && el("button", { type: "button", class: "quiet danger-text", "data-do": "forget", onclick: act("forget") }, t("about.forget")),
      ),
      found.degraded && el("p", { class: "degraded" }, found.degraded),
      section("about.contradictions", found.contradictions, contradiction),
      section("about.entries", found.entries, (one) => entryLine(one, one.state !== "active" && label("state", one.state), when(one.createdAt))),
      section("about.older", found.older, (one) => entryLine(one, label("state", one.state), when(one.updatedAt))),
      section("about.notes", found.notes, (one) => line(one, names)),
      section("about.conversations", found.conversations, (one) => line(one, names)),
      section("about.recalls", found.recalls, recall),
      section("about.changes", found.changes, changed),
    ];
  }

  const section = (key, items, draw) =>
    items.length > 0 &&
    el("section", { class: "panel-section", "data-section": key }, el("h3", {}, tn(key, items.length)), el("ul", { class: "plain-list" }, items.map((one) => el("li", {}, draw(one)))));

  function line(one, names) {
    const low = one.text.toLowerCase();
    const at = names.map((each) => [low.indexOf(each.toLowerCase()), each.length]).find(([start]) => start >= 0);
    return [
      el("a", { class: "row", href: address("notes", one.path, { from: one.line, to: one.line }) }, `${one.path}:${one.line}`),
      " ",
      el("span", { class: "faint" }, one.role && t(`role.${one.role}`), one.date && ` ${one.date}`),
      el("p", { class: "snippet" }, marked(one.text, at ? [[at[0], at[0] + at[1]]] : [])),
    ];
  }

  function contradiction({ earlier, later, why }) {
    const keep = (stays, ends) => async () => {
      try {
        const made = await ask("about.change", { places: [{ ref: ends.id, text: ends.text }], name: "" });
        announce(t("about.kept", { text: stays.text }), t("do.undo"), () => undo(made));
      } catch (error) {
        announce(sentence(error));
      }
      await load({ quiet: true });
      enter(main); // the buttons are gone
    };
    const one = (entry, other) =>
      el(
        "div",
        { class: "side-by-side" },
        entryLine(entry, when(entry.createdAt)),
        el("button", { type: "button", class: "quiet", "data-do": "keep", onclick: keep(entry, other) }, t("about.keep")),
      );
    return [one(earlier, later), one(later, earlier), el("p", { class: "faint" }, translated(why))];
  }

  async function undo({ entry, seq, files }) {
    try {
      await ask("about.undo", { entry, seq, files });
      announce(t("about.undone"));
    } catch (error) {
      announce(sentence(error));
    }
    load({ quiet: true });
  }

  const recall = (one) => [
    el("a", { class: "row", href: address("recalls", one.id) }, one.query || t("recall.noQuery")),
    " ",
    el("span", { class: "faint" }, moment(one.at)),
  ];

  const changed = (one) => [
    el("b", {}, t(`event.${one.kind}`)),
    " ",
    el("span", { class: "faint" }, t("entry.by", { who: t(`who.${one.by}`) }), " · ", moment(one.at)),
    one.before && one.after && one.before !== one.after ? wordDifference(one.before, one.after) : el("p", {}, one.after ?? one.before),
  ];

  return {
    async show(route) {
      if (peek.show(route) && shown && route.id === name) return;
      if (route.id === name && shown) return;
      name = route.id;
      input.value = name;
      await load();
    },
    refresh(events) {
      if (["entries", "notes", "sync", "recall"].some((kind) => events.has(kind))) load({ quiet: true });
      peek.refresh();
    },
    actions: () => peek.actions(),
    focusSearch: () => (input.focus(), input.select(), true),
    key: (event) => peek.key(event) || step(place, ".row", event),
    escape: () => peek.escape() || (name ? (go("about"), true) : false),
    close: () => (get.stop(), peek.close()),
  };
}
