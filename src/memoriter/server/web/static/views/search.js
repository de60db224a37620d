// Search as you type: what the agent would find, with the reasons. An empty memory shows the first three steps.

import { isAborted, news, newest } from "../api.js";
import { el, fill, icon, refill, typed, withCode } from "../dom.js";
import { number, t, tn, translated } from "../i18n.js";
import { step } from "../keys.js";
import { failure, nothing } from "../notices.js";
import { segments } from "../parts.js";
import { address, amend, here } from "../router.js";
import { hitCard } from "./hit.js";
import { home } from "./home.js";
import { peekPanel } from "./peek.js";

const PAUSE_MS = 140; // pause after the last keystroke before the request
const SLOW_MS = 700; // after this, show that the search is still running
const PAGE_SIZE = 20;
const MAX_HITS = 100;

/** The results, with a line below those that recall would add to a prompt. */
function divided(hits, threshold) {
  const list = (some, kind) => some.length > 0 && el("ol", { class: `hits ${kind}` }, some.map((hit) => el("li", {}, hitCard(hit))));
  if (hits.every((hit) => hit.confidence === undefined)) return list(hits, "all");
  const fits = (hit) => (hit.confidence ?? 0) >= threshold;
  const fitting = hits.filter(fits);
  const others = hits.filter((hit) => !fits(hit));
  return [
    list(fitting, "fitting"),
    others.length > 0 && el("p", { class: "threshold", role: "note" }, t(fitting.length ? "search.threshold" : "search.threshold.none")),
    list(others, "others"),
  ];
}

export function searchView(main) {
  const search = newest();
  const isNew = news();
  let query = "";
  let source = "";
  let most = PAGE_SIZE;
  let timer = 0;
  let turn = 0; // number of the newest request
  let stale = false; // something changed during a search

  const input = el("input", {
    type: "search",
    id: "query",
    class: "query",
    autocomplete: "off",
    spellcheck: "false",
    dir: "auto",
    enterkeyhint: "search",
    placeholder: t("search.placeholder"),
    "aria-label": t("search.label"),
    "aria-keyshortcuts": "/",
    maxlength: "1000",
    ...typed(() => later()),
    onkeydown: (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter") (event.preventDefault(), now());
      if (event.key === "ArrowDown") (event.preventDefault(), results.querySelector(".row")?.focus());
    },
  });
  const showHome = home(search, input, () => now());
  const sources = el("div", { class: "sources" });
  const summary = el("p", { class: "summary", role: "status", "aria-live": "polite" });
  const results = el("div", { class: "results" });
  const split = el(
    "div",
    { class: "split" },
    el(
      "div",
      { class: "split-list" },
      el("h1", { class: "hidden" }, t("view.search")),
      el(
        "div",
        { class: "search-head" },
        el("div", { class: "query-box" }, icon("search"), input, el("kbd", { "aria-hidden": "true" }, "/")),
        sources,
      ),
      summary,
      results,
    ),
  );
  const peek = peekPanel(main, split);
  fill(main, split);
  if (matchMedia("(hover: hover)").matches) input.focus(); // on a phone, the keyboard would cover the page

  function showSources() {
    const options = [
      ["", "search.all"],
      ["memory", "source.memory"],
      ["sessions", "source.sessions"],
      ["entries", "source.entries"],
    ];
    refill(
      sources,
      segments(
        t("search.where"),
        options.map(([key, text]) => [key, t(text)]),
        source,
        (key) => {
          source = key;
          now();
        },
      ),
    );
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(now, PAUSE_MS);
  }

  function now(wanted = PAGE_SIZE) {
    clearTimeout(timer);
    query = input.value;
    most = wanted;
    amend("search", "", { q: query.trim() && query, in: source });
    peek.show(here());
    showSources();
    return run();
  }

  async function run({ quiet = false } = {}) {
    if (!query.trim()) return welcome({ quiet });
    const mine = ++turn;
    main.setAttribute("aria-busy", "true");
    const slow = setTimeout(() => quiet || fill(summary, t("search.slow")), SLOW_MS);
    try {
      const asked = { query, maxResults: most, explain: true, ...(source && { source }) };
      const answer = await search("memory.search", asked);
      if (isNew(answer) || !quiet) show(answer);
      peek.mark();
    } catch (error) {
      if (isAborted(error)) return;
      isNew.forget();
      fill(summary);
      fill(
        results,
        failure(error, () => run()),
      );
    } finally {
      clearTimeout(slow);
      if (mine === turn) {
        main.removeAttribute("aria-busy");
        if (stale) ((stale = false), run({ quiet: true }));
      }
    }
  }

  function show(answer) {
    const hits = answer.results ?? [];
    const more = hits.length >= most && most < MAX_HITS;
    fill(
      summary,
      more ? t("search.best", { n: number(hits.length) }) : tn("search.found", hits.length),
      answer.notice && el("span", { class: "degraded" }, withCode(translated(answer.notice))),
      answer.degraded && el("span", { class: "degraded" }, withCode(translated(answer.degraded))),
    );
    refill(
      results,
      hits.length
        ? divided(hits, answer.threshold ?? 0)
        : nothing(
            t("search.none"),
            el("p", { class: "faint" }, t("search.none.hint")),
            source && el("p", {}, el("a", { href: address("search", "", { q: query }) }, t("search.everywhere"))),
          ),
      more &&
        el(
          "button",
          { type: "button", class: "quiet more", "data-value": "more", onclick: () => now(most + PAGE_SIZE) },
          t("do.more"),
        ),
    );
  }

  async function welcome({ quiet }) {
    search.stop();
    turn++;
    stale = false;
    main.removeAttribute("aria-busy");
    fill(summary);
    if (quiet && !results.querySelector(".welcome")) quiet = false;
    try {
      await showHome(results, { quiet });
    } catch (error) {
      if (!isAborted(error))
        fill(
          results,
          failure(error, () => run()),
        );
    }
  }

  return {
    show(route) {
      const asked = route.params.get("q") ?? "";
      const same = asked === query && (route.params.get("in") ?? "") === source;
      if (peek.show(route) && same && results.hasChildNodes()) return null;
      source = route.params.get("in") ?? "";
      if (asked !== input.value) input.value = asked;
      query = asked;
      showSources();
      return run();
    },
    refresh(events) {
      const relevant = ["sync", "notes", "entries", "capture", "recall"].some((kind) => events.has(kind));
      const busy = main.contains(document.activeElement) && document.activeElement.tagName === "TEXTAREA";
      if (main.hasAttribute("aria-busy")) stale ||= relevant;
      else if (relevant && !busy) run({ quiet: true });
      peek.refresh();
    },
    actions: () => peek.actions(),
    focusSearch: () => (input.focus(), input.select(), true),
    key: (event) => peek.key(event) || step(results, ".row", event),
    escape() {
      if (peek.escape()) return true;
      if (document.activeElement === input && !input.value) return (input.blur(), true);
      if (!input.value) return false;
      input.value = "";
      now();
      input.focus();
      return true;
    },
    close() {
      clearTimeout(timer);
      stale = false;
      search.stop();
      peek.close();
    },
  };
}
