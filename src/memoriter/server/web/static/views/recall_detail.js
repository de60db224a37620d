// One recall: the query, the block as the agent saw it, what was added to the prompt, what was left out, and why.

import { el, fill } from "../dom.js";
import { scoreBar } from "../draw/score.js";
import { moment, t, tn, translated } from "../i18n.js";
import { facts } from "../parts.js";
import { address } from "../router.js";
import { plain } from "./hit.js";
import { wordDifference } from "./memory_history.js";

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
    section(
      tn("recall.entered", entered.length),
      entered.length
        ? el("ol", { class: "considered" }, entered.map(one))
        : el("p", { class: "faint" }, t("recall.entered.none")),
    ),
    section(t("recall.block"), block(recall.block)),
    left.length > 0 &&
      section(tn("recall.left", left.length), el("ol", { class: "considered left" }, left.map(one))),
  ];
}

const section = (title, ...children) => el("section", { class: "panel-section" }, el("h3", {}, title), children);

/** The block that was injected, to read and to copy. */
function block(text) {
  if (!text) return el("p", { class: "faint" }, t("recall.block.none"));
  const copy = async (event) => {
    const button = event.currentTarget;
    const went = navigator.clipboard.writeText(text);
    fill(button, await went.then(() => t("done.copied")).catch(() => t("done.not.copied")));
  };
  return [
    el("pre", { class: "block", tabindex: "0" }, text),
    navigator.clipboard && el("p", {}, el("button", { type: "button", class: "quiet", onclick: copy }, t("recall.block.copy"))),
  ];
}

/** One line as it was then. What has changed since is shown as a difference. */
function one(item) {
  const isEntry = item.kind === "entry";
  const place = isEntry ? address("memories", item.ref) : noteAddress(item.citation ?? item.ref);
  return el(
    "li",
    {},
    item.text && el("p", { class: "then" }, isEntry ? el("a", { href: place }, item.text) : plain(item.text)),
    (!isEntry || !item.text) && el("p", { class: "faint" }, el("a", { href: place }, item.citation ?? item.ref)),
    item.now !== undefined && el("div", { class: "since" }, el("p", { class: "faint" }, t("recall.changed")), wordDifference(item.text, item.now)),
    !item.exists && el("p", { class: "faint" }, t("recall.gone")),
    item.parts?.length > 0
      ? el("details", {}, el("summary", { class: "reason", title: t("score.how") }, translated(item.reason)), scoreBar(item.score, item.parts))
      : el("p", { class: "reason" }, translated(item.reason)),
  );
}

/** The address of the lines that a citation names. */
export function noteAddress(citation) {
  const match = /^(.*)#L(\d+)(?:-L?(\d+))?$/.exec(citation);
  return match
    ? address("notes", match[1], { from: match[2], to: match[3] ?? match[2] })
    : address("notes", citation);
}
