// A note as it stands, line by line; a transcript as a conversation; a note as the chunks that search knows.

import { el } from "../dom.js";
import { t, tn } from "../i18n.js";
import { label, trust } from "../parts.js";

/** Numbered lines. */
export function sourceLines(text, first) {
  return el(
    "ol",
    { class: "source-lines", start: first },
    text
      .split("\n")
      .map((line, index) =>
        el("li", { "data-from": first + index, "data-to": first + index, value: first + index }, line || " "),
      ),
  );
}

/** A transcript's lines as turns; a line that is not understood is shown as it is. */
export function transcript(text, first) {
  const turns = text.split("\n").map((line, index) => turn(line, first + index));
  return el("ol", { class: "turns" }, turns.filter(Boolean));
}

function turn(line, number) {
  if (!line.trim()) return null;
  const { role, said } = spoken(line);
  return el(
    "li",
    { class: "turn", "data-role": role, "data-from": number, "data-to": number },
    el("p", { class: "faint" }, role && t(`role.${role}`), ` ${number}`),
    el("p", { class: "said-words" }, said),
  );
}

const ROLES = ["user", "assistant", "system", "tool"];

function spoken(line) {
  try {
    const record = JSON.parse(line);
    const message = record.message ?? record;
    const role = ROLES.find((name) => name === (message.role ?? record.type)) ?? "";
    const said = words(message.content ?? message.text ?? record.text);
    return said ? { role, said } : { role: "", said: line };
  } catch {
    return { role: "", said: line };
  }
}

function words(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part) => (typeof part === "string" ? part : (part?.text ?? "")))
    .filter(Boolean)
    .join("\n");
}

/** Chunks with their lines, headings and whether they have a vector. */
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
