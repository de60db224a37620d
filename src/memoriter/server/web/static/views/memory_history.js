// The history of a memory: its events, with the differences between versions.

import { compare } from "../texts.js";
import { el } from "../dom.js";
import { day, number, t, translated } from "../i18n.js";
import { when } from "../parts.js";

/** The changes of a memory, newest first, each with its difference. */
export function history(events) {
  const newestFirst = [...events].sort((a, b) => b.seq - a.seq);
  return el(
    "ol",
    { class: "history" },
    newestFirst.map((event) =>
      el(
        "li",
        {},
        el(
          "p",
          {},
          el("b", {}, t(`event.${event.kind}`)),
          " ",
          el("span", { class: "faint" }, t("entry.by", { who: t(`who.${event.by}`) }), " · "),
          when(event.at),
        ),
        event.note && !["undo", "import"].includes(event.kind) && el("p", { class: "faint" }, translated(event.note)),
        event.said && el("p", {}, el("q", {}, event.said)),
        difference(event.before, event.after),
      ),
    ),
  );
}

const COMPARED_FIELDS = ["type", "importance", "state", "trust", "expiresAt", "tags"];

function difference(before, after) {
  if (!before || !after) return null;
  const words = before.text === after.text ? null : wordDifference(before.text ?? "", after.text ?? "");
  const changes = COMPARED_FIELDS.filter((name) => isChanged(name, before[name], after[name]));
  const fields = changes.map((name) =>
    el(
      "li",
      {},
      `${t(`entry.${name === "expiresAt" ? "expires" : name}`)}: `,
      el("del", {}, shownValue(name, before[name])),
      " ",
      el("ins", {}, shownValue(name, after[name])),
    ),
  );
  return [words, fields.length > 0 && el("ul", { class: "diff-fields" }, fields)];
}

const DAY_S = 86_400;

/** Whether a reader cares: an expiry is a day, not a minute. */
function isChanged(name, before, after) {
  if (name === "expiresAt" && before && after && Math.abs(before - after) < DAY_S) return false;
  return shownValue(name, before) !== shownValue(name, after);
}

function shownValue(name, value) {
  if (name === "expiresAt") return value ? day(value) : t("entry.never");
  if (name === "tags") return value?.length ? value.join(", ") : "–";
  if (name === "importance") return number(value, 1);
  return t(`${name}.${value}`);
}

/** A text with deletions struck out and insertions underlined. */
export function wordDifference(before, after) {
  const tags = { gone: "del", new: "ins" };
  const pieces = compare(before, after).map(([kind, text]) =>
    tags[kind] ? el(tags[kind], {}, text) : text,
  );
  return el("p", { class: "diff" }, pieces);
}
