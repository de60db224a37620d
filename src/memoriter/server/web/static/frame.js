// The frame around every view: navigation, progress, and the switches for agent, language and theme.

import { agent } from "./api.js";
import { el, fill, icon, measure, rings } from "./dom.js";
import { isLive } from "./events.js";
import { few, languageName, nextLanguage, number, t } from "./i18n.js";
import { messageRegion } from "./notices.js";
import { choice } from "./parts.js";
import { nextTheme, theme } from "./prefs.js";
import { MAIN_VIEWS, address } from "./router.js";

const SHORTCUT_LETTERS = { search: "S", inbox: "I", memories: "M", about: "T", notes: "N", recalls: "R", health: "H" };

export function frame({ onLanguage, onAgent, onHelp }) {
  const links = new Map(MAIN_VIEWS.map((name) => [name, navLink(name)]));
  const who = el("div", { class: "who" });
  const pulse = el("p", { class: "pulse" });
  const work = el("div", { class: "work", role: "status" });
  const main = el("main", { id: "main", tabindex: "-1" });
  const node = el(
    "div",
    { class: "frame" },
    el(
      "a",
      {
        class: "skip",
        href: "#main",
        onclick: (event) => {
          event.preventDefault();
          main.focus();
        },
      },
      t("frame.skip"),
    ),
    el(
      "header",
      { class: "side" },
      el(
        "a",
        { class: "name", href: address("search"), "aria-label": t("frame.home") },
        rings(),
        el("span", {}, "memoriter"),
      ),
      who,
      el(
        "nav",
        { "aria-label": t("frame.views") },
        el(
          "ul",
          {},
          [...links.values()].map((link) => el("li", {}, link)),
        ),
      ),
      el("div", { class: "foot" }, work, pulse, switches(onLanguage, onHelp)),
    ),
    main,
    messageRegion(),
  );
  const self = {
    node,
    main,
    select: (name) =>
      links.forEach((link, key) =>
        key === name ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current"),
      ),
    live: () =>
      fill(
        pulse,
        el("i", { class: isLive() ? "dot on" : "dot" }),
        t(isLive() ? "frame.live" : "frame.still"),
      ),
    agents: (known) => fill(who, known.length > 1 ? agentChoice(known, onAgent) : null),
    counts: (facets, waiting = 0) => showCounts(links, facets, waiting),
    progress: (events) => showProgress(work, events),
  };
  self.live();
  return self;
}

function navLink(name) {
  return el(
    "a",
    { href: address(name), "data-view": name, "aria-keyshortcuts": `g ${SHORTCUT_LETTERS[name].toLowerCase()}` },
    icon(name),
    el("span", { class: "nav-name" }, t(`view.${name}`)),
    el("span", { class: "nav-count" }),
    el("kbd", { "aria-hidden": "true" }, SHORTCUT_LETTERS[name]),
  );
}

function agentChoice(known, onAgent) {
  const options = known.map((one) => [one.name, one.name]);
  return choice(options, agent(), onAgent, { "aria-label": t("frame.agent"), class: "agent" });
}

function switches(onLanguage, onHelp) {
  const other = nextLanguage();
  const themes = el(
    "button",
    { type: "button", class: "plain", onclick: () => named(nextTheme()) },
    icon("theme"),
    el("span"),
  );
  const named = (name) => {
    fill(themes.lastChild, t(`theme.${name}`));
    themes.setAttribute("aria-label", t("frame.theme", { theme: t(`theme.${name}`) }));
  };
  named(theme());
  return el(
    "div",
    { class: "switches" },
    el(
      "button",
      {
        type: "button",
        class: "plain",
        lang: other,
        "data-language": other,
        onclick: () => onLanguage(other),
      },
      icon("language"),
      el("span", {}, languageName(other)),
    ),
    themes,
    el(
      "button",
      {
        type: "button",
        class: "plain help",
        "aria-label": t("help.title"),
        "aria-keyshortcuts": "?",
        onclick: onHelp,
      },
      icon("help"),
    ),
  );
}

function showCounts(links, facets, waiting) {
  const put = (name, count, looks) => fill(links.get(name).querySelector(".nav-count"), count > 0 && el(looks, { title: number(count) }, few(count)));
  put("memories", facets?.states?.active ?? 0, "span");
  put("inbox", waiting, "b");
}

function showProgress(work, events) {
  const progress = events.get("progress");
  if (events.has("sync") || !progress || !progress.total || progress.done >= progress.total) {
    fill(work);
    return;
  }
  const bar = measure(el("i", { class: "work-bar" }), "--share", progress.done / progress.total);
  fill(
    work,
    el("span", {}, t(`stage.${progress.stage}`), ` ${number(progress.done)} / ${number(progress.total)}`),
    bar,
  );
}
