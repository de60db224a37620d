// One recall: the query, what was added to the prompt, what was left out, and why.

import { el } from "../dom.js";
import { scoreBar } from "../draw/score.js";
import { moment, t, tn, translated } from "../i18n.js";
import { facts } from "../parts.js";
import { address } from "../router.js";

export function recallDetail(recall) {
  const considered = recall.considered ?? [];
  const entered = considered.filter((one) => one.entered);
  const left = considered.filter((one) => !one.entered);
  return [
    el("h2", { class: "statement" }, recall.query || t("recall.noQuery")),
    facts([
      [t("recall.at"), moment(recall.at)],
      [t("recall.interface"), t(`interface.${recall.interface}`)],
      [
        t("entry.session"),
        recall.session &&
          el("a", { href: address("recalls", "", { session: recall.session }) }, recall.session),
      ],
      [
        t("recall.cost"),
        `${tn("count.tokens", recall.tokens)} · ${tn("count.characters", recall.characters)}`,
      ],
      [t("entry.id"), el("code", {}, recall.id)],
    ]),
    el(
      "section",
      { class: "panel-section" },
      el("h3", {}, tn("recall.entered", entered.length)),
      entered.length
        ? el("ol", { class: "considered" }, entered.map(one))
        : el("p", { class: "faint" }, t("recall.entered.none")),
    ),
    left.length > 0 &&
      el(
        "section",
        { class: "panel-section" },
        el("h3", {}, tn("recall.left", left.length)),
        el("ol", { class: "considered left" }, left.map(one)),
      ),
  ];
}

function one(item) {
  const place =
    item.kind === "entry" ? address("memories", item.ref) : noteAddress(item.citation ?? item.ref);
  return el(
    "li",
    {},
    el("a", { href: place }, item.text || item.citation || item.ref),
    el("p", { class: "reason" }, translated(item.reason)),
    item.parts?.length > 0 && scoreBar(item.score, item.parts),
  );
}

function noteAddress(citation) {
  const match = /^(.*)#L(\d+)(?:-L?(\d+))?$/.exec(citation);
  return match
    ? address("notes", match[1], { from: match[2], to: match[3] ?? match[2] })
    : address("notes", citation);
}
