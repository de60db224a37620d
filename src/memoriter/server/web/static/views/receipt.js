// The receipt of an erasure: when, how much, what it covered and what it did not, to read and to keep.

import { agent } from "../api.js";
import { el, fill } from "../dom.js";
import { moment, t, tn } from "../i18n.js";
import { covers } from "./forgetting_parts.js";

export function receiptOf(receipt, close) {
  const at = Date.now() / 1000;
  const kept = {
    at: new Date(at * 1000).toISOString(),
    agent: agent(),
    forgotten: receipt.forgotten,
    covered: receipt.covered,
    notCovered: receipt.notCovered,
  };
  const copy = async (event) => {
    const button = event.currentTarget;
    const went = navigator.clipboard.writeText(JSON.stringify(kept, null, 2));
    fill(button, await went.then(() => t("done.copied")).catch(() => t("done.not.copied")));
  };
  return el(
    "div",
    { class: "stack receipt" },
    el("p", { class: "lead" }, tn("forget.receipt", receipt.forgotten.length)),
    receipt.failed && el("p", { class: "wrong", role: "alert" }, receipt.failed),
    covers(receipt),
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
