// A note line by line, a transcript as a conversation, or a note as its chunks.

import { el } from "../dom.js";
import { t, tn } from "../i18n.js";
import { label, trust } from "../parts.js";

/** Numbered lines, one at a time. */
export function* sourceLines(text, first) {
  for (const line of text.split("\n")) {
    yield el("li", { "data-from": first, "data-to": first, value: first }, line || " ");
    first++;
  }
}

/** The turns of a transcript. A line in an unknown format is shown unchanged. */
export function transcript(text, first) {
  return el("ol", { class: "turns" }, [...turns(text, first)]);
}

/** The same turns, one at a time. */
export function* turns(text, first) {
  for (const line of text.split("\n")) {
    if (line.trim()) yield turn(line, first);
    first++;
  }
}

function turn(line, number) {
  const { role, at, said } = TURN.exec(line)?.groups ?? { said: line };
  return el(
    "li",
    { class: "turn", "data-role": role, "data-from": number, "data-to": number },
    el(
      "p",
      { class: "turn-head" },
      role && el("b", {}, t(`role.${role}`)),
      at && el("span", { class: "faint" }, at),
      el("span", { class: "faint" }, tn("notes.line", number)),
    ),
    el("p", { class: "said-words" }, said),
  );
}

// The gateway writes a turn as `user (2026-02-10 09:00): …`.
const TURN = /^(?<role>user|assistant)(?: \((?<at>[\d -]+:\d\d)\))?: (?<said>.*)$/s;

/** Chunks with their lines and headings, and whether they have a vector. */
export function chunkList(chunks, text) {
  const lines = text.text.split("\n");
  const from = text.from;
  return el(
    "ol",
    { class: "chunks" },
    chunks.map((chunk) =>
      el(
        "li",
        { class: "chunk", "data-from": chunk.startLine, "data-to": chunk.endLine },
        el(
          "p",
          { class: "chunk-head" },
          el("b", {}, t("notes.lines", { from: chunk.startLine, to: chunk.endLine })),
          (chunk.headings ?? []).length > 0 && el("span", { class: "faint" }, chunk.headings.join(" › ")),
          el("span", { class: "faint" }, tn("count.tokens", chunk.tokens ?? 0)),
          chunk.date && el("span", { class: "faint" }, chunk.date),
          trust(chunk.trust),
          label("vector", chunk.embedded ? "yes" : "no"),
        ),
        el(
          "pre",
          { tabindex: "0" },
          lines.slice(Math.max(0, chunk.startLine - from), Math.max(0, chunk.endLine - from + 1)).join("\n"),
        ),
      ),
    ),
  );
}

const MIN_HEADINGS = 3;
const MAX_NAME = 200; // characters; the style shows two lines

/** The headings of a note, or what the user said in a conversation, as buttons that scroll there, for wide screens. Null
 *  if there are few. */
export function outline(place) {
  const headings = [...place.querySelectorAll("h2, h3, h4, .turn[data-role=user]")];
  if (headings.length < MIN_HEADINGS) return null;
  return el(
    "nav",
    { class: "outline", "aria-label": t("notes.outline") },
    headings.map((heading) =>
      el(
        "button",
        {
          type: "button",
          "data-level": heading.tagName,
          onclick: () => heading.scrollIntoView({ block: "start" }),
        },
        (heading.querySelector(".said-words") ?? heading).textContent.slice(0, MAX_NAME),
      ),
    ),
  );
}
