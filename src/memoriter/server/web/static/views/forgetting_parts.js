// Parts of the forget dialogs: memories to forget, possible matches, which copies remain, and the receipt.

import { agent } from "../api.js";
import { el, fill, withCode } from "../dom.js";
import { actions } from "../forms.js";
import { moment, number, t, tn, translated } from "../i18n.js";
import { sentence } from "../notices.js";
import { label, when } from "../parts.js";

/** The confirmation: which memories and copies are hidden or erased, and which copies are not. `erase` goes on to the
 *  confirmation of an erasure; null if this is one. */
export function confirmation(entries, trial, deed, close, erase) {
  const count = trial.forgotten.length;
  const [one, several] = erase ? ["do.forget", "forget.title.several"] : ["forget.really", "forget.really.several"];
  const name = t(count === 1 ? one : several, { n: number(count) });
  const { row, run } = actions(name, deed, close, { danger: !erase });
  if (erase) {
    const go = (event) => {
      event.currentTarget.disabled = true;
      erase().catch((error) => row.querySelector(".wrong").replaceChildren(sentence(error)));
    };
    row.lastChild.before(el("button", { type: "button", class: "quiet danger-text", onclick: go }, t("forget.now")));
  }
  const rest = count - entries.length;
  return el(
    "form",
    {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        run();
      },
    },
    el("p", { class: "lead" }, t(erase ? "forget.would.hide" : "forget.would")),
    el("ul", { class: "to-erase", tabindex: "0", "aria-label": tn("entry.found", count) }, entries.map(erasedLine)),
    rest > 0 && el("p", { class: "faint" }, tn("forget.rest", rest)),
    covers(trial, t(erase ? "forget.hidden" : "forget.covered.trial")),
    row,
  );
}

function erasedLine(entry) {
  return el(
    "li",
    {},
    el("span", { class: "entry-text" }, entry.text || t("entry.forgotten.text")),
    el("span", { class: "entry-facts" }, label("type", entry.type), when(entry.createdAt)),
  );
}

/** Memories with checkboxes. `chosen()` returns the ids of the selected ones. */
export function ticks(entries, ticked) {
  const boxes = entries.map((entry) => {
    const box = el("input", { type: "checkbox", value: entry.id, checked: ticked.includes(entry.id) });
    return el("li", {}, el("label", {}, box, el("span", { class: "entry-text" }, entry.text)));
  });
  const node = el("ul", { class: "to-erase" }, boxes);
  return { node, chosen: () => [...node.querySelectorAll("input:checked")].map((box) => box.value) };
}

/** Which copies are covered, which lines of notes are erased, and what remains. */
function covers(receipt, title) {
  const list = (heading, names, kind) =>
    names?.length > 0 && [
      el("h3", {}, heading),
      el(
        "ul",
        { class: kind },
        names.map((name) => el("li", {}, withCode(translated(name)))),
      ),
    ];
  return [
    list(title, receipt.covered, "covered"),
    list(t("forget.lines"), receipt.noteLines?.map((at) => `${at.path}:${at.line}  ${at.text}`), "note-lines"),
    list(t("forget.notCovered"), receipt.notCovered, "not-covered"),
    list(t("forget.mentions"), receipt.mentions, "mentions"),
  ];
}

/** The receipt, to read and to copy. */
export function receiptOf(receipt, close, erased) {
  const at = Date.now() / 1000;
  const kept = {
    at: new Date(at * 1000).toISOString(),
    agent: agent(),
    forgotten: receipt.forgotten,
    covered: receipt.covered,
    notCovered: receipt.notCovered,
    noteLines: receipt.noteLines,
    mentions: receipt.mentions,
  };
  const copy = async (event) => {
    const button = event.currentTarget;
    const went = navigator.clipboard.writeText(JSON.stringify(kept, null, 2));
    fill(button, await went.then(() => t("done.copied")).catch(() => t("done.not.copied")));
  };
  return el(
    "div",
    { class: "stack receipt" },
    el("p", { class: "lead" }, tn(erased ? "forget.receipt" : "forget.done", receipt.forgotten.length)),
    receipt.failed && el("p", { class: "wrong", role: "alert" }, receipt.failed),
    covers(receipt, t(erased ? "forget.covered" : "forget.hidden")),
    el(
      "details",
      {},
      el("summary", {}, moment(at), " · ", t("forget.ids")),
      el(
        "ul",
        { class: "plain-list ids" },
        receipt.forgotten.map((id) => el("li", {}, el("code", {}, id))),
      ),
    ),
    el(
      "div",
      { class: "dialog-actions" },
      navigator.clipboard && el("button", { type: "button", class: "quiet", onclick: copy }, t("do.copy")),
      el("button", { type: "button", class: "primary", onclick: close }, t("do.close")),
    ),
  );
}
