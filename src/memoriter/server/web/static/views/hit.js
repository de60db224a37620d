// One search result: its text with the matches marked, its place, its trust, and its score.

import { el, icon, marked } from "../dom.js";
import { amount, scoreBar, scoreTable } from "../draw/score.js";
import { t } from "../i18n.js";
import { findMatches } from "../texts.js";
import { pathName, trust } from "../parts.js";
import { address } from "../router.js";

/** The address of a hit: the lines of its note, or the memory. */
function placeOf(hit) {
  if (hit.source === "entries") return address("memories", hit.path.replace(/^entries\//, ""));
  return address("notes", hit.path, { from: hit.startLine, to: hit.endLine });
}

export function hitCard(hit) {
  const snippet = plain(hit.snippet);
  const place = placeOf(hit);
  const name = hit.source === "entries" ? t("source.entry") : [pathName(hit.path), `:${lines(hit)}`];
  return el(
    "article",
    { class: "hit", "data-source": hit.source, "data-id": place },
    el(
      "header",
      {},
      icon({ memory: "notes", sessions: "recalls", entries: "memories" }[hit.source] ?? "notes"),
      el("a", { class: "row place", href: place }, name),
      hit.date && el("span", { class: "faint" }, hit.date),
      trust(hit.trust),
      hit.supersededBy && el("span", { class: "faint", title: hit.supersededBy }, t("hit.superseded")),
      hit.newer && el("span", { class: "faint", title: hit.newer }, t("hit.newer")),
      hit.planned && el("span", { class: "faint" }, t("hit.planned", { days: hit.planned })),
    ),
    hit.heading && el("p", { class: "faint heading" }, hit.heading),
    el(
      "p",
      { class: "snippet", onclick: (event) => getSelection().isCollapsed && event.target.closest(".hit").querySelector(".row").click() },
      marked(snippet, findMatches(snippet, hit.matched ?? [])),
    ),
    el(
      "details",
      {},
      el("summary", { title: t("score.how") }, el("i", { class: "meter", "data-level": hit.level ?? "none", "aria-hidden": "true" }), t(hit.level ? `level.${hit.level}` : "score.how")),
      el("p", { class: "score-sum" }, t("score.title", { score: amount(hit.score) })),
      scoreBar(hit.score, hit.parts ?? []),
      el("div", { class: "wide", tabindex: "0" }, scoreTable(hit.score, hit.parts ?? [])),
      hit.citation && el("p", { class: "faint" }, `${t("search.citation")} `, el("code", {}, hit.citation)),
    ),
  );
}

/** Remove blank lines and code fences, which only take space here, and show marks of Markdown as a reader would. */
export function plain(text) {
  return text
    .split("\n")
    .filter((line) => !/^\s*(?:```|~~~)\S*\s*$/.test(line) && line.trim())
    .map(unmarked)
    .join("\n")
    .trim();
}

const MARKS = [
  [/^\s*[-*+] \[ \] /, "☐ "],
  [/^\s*[-*+] \[[xX]\] /, "☑ "],
  [/^\s*[-*+] /, "• "],
  [/^\s*(?:#{1,6}|>) /, ""],
  [/\[([^\][]+)\]\([^()\s]*\)/g, "$1"],
  [/\*\*([^*]+)\*\*/g, "$1"],
  [/`([^`]+)`/g, "$1"],
];

const unmarked = (line) => MARKS.reduce((text, [mark, shown]) => text.replace(mark, shown), line);

function lines({ startLine, endLine }) {
  return startLine === endLine ? startLine : `${startLine}–${endLine}`;
}
