// A text that was changed by the reader and, in the meantime, by another client: both versions, and what to do.

import { el } from "../dom.js";
import { t } from "../i18n.js";
import { wordDifference } from "./memory_history.js";

/** Both versions side by side, each compared with what the reader saw. `choose` has `theirs`, `mine` and `both`. */
export function conflict(base, theirs, mine, choose) {
  const column = (name, text) =>
    el("section", { "data-version": name }, el("h3", {}, t(`conflict.${name}`)), wordDifference(base, text));
  const button = (name) =>
    el("button", { type: "button", class: "quiet", "data-do": name, onclick: choose[name] }, t(`conflict.use.${name}`));
  return el(
    "section",
    { class: "conflict", role: "alert", "aria-label": t("conflict.title") },
    el("p", {}, t("conflict.title")),
    el("div", { class: "versions" }, column("theirs", theirs), column("mine", mine)),
    el("div", { class: "dialog-actions" }, ["theirs", "mine", "both"].map(button)),
  );
}

/** Whether an error says that another client changed the same thing. */
export function isConflict(error) {
  return error?.status === 409 && ["entry.changed", "entry.conflict", "note.changed"].includes(error.code);
}
