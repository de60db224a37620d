// What the dialogs of forgetting show: memories that would go, those that may be meant, and what an erasure reaches.

import { actions } from "../dialogs.js";
import { el } from "../dom.js";
import { number, t, tn, translated } from "../i18n.js";
import { label, when } from "../parts.js";

/** The last question: these go, this is reached, that is not. */
export function erasure(entries, trial, deed, close) {
  const count = trial.forgotten.length;
  const name = count === 1 ? t("forget.really") : t("forget.really.several", { n: number(count) });
  const { row, run } = actions(name, deed, close, { danger: true });
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
    el("p", { class: "lead" }, t("forget.would")),
    el("ul", { class: "to-erase", tabindex: "0", "aria-label": tn("entry.found", count) }, entries.map(erasedLine)),
    rest > 0 && el("p", { class: "faint" }, tn("forget.rest", rest)),
    covers(trial, t("forget.covered.trial")),
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

/** Memories with boxes to tick; `chosen()` are the ids of those that are. */
export function ticks(entries, ticked) {
  const boxes = entries.map((entry) => {
    const box = el("input", { type: "checkbox", value: entry.id, checked: ticked.includes(entry.id) });
    return el("li", {}, el("label", {}, box, el("span", { class: "entry-text" }, entry.text)));
  });
  const node = el("ul", { class: "to-erase" }, boxes);
  return { node, chosen: () => [...node.querySelectorAll("input:checked")].map((box) => box.value) };
}

/** What an erasure reaches, and what it does not. */
export function covers(receipt, title = t("forget.covered")) {
  const list = (heading, names, kind) =>
    names?.length > 0 && [
      el("h3", {}, heading),
      el(
        "ul",
        { class: kind },
        names.map((name) => el("li", {}, translated(name))),
      ),
    ];
  return [
    list(title, receipt.covered, "covered"),
    list(t("forget.notCovered"), receipt.notCovered, "not-covered"),
  ];
}
