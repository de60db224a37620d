// "Why did you say that?": the recall that a sentence of the agent came from, the words of then, and who wrote them.

import { ask } from "../api.js";
import { ask as dialog } from "../dialogs.js";
import { el, fill } from "../dom.js";
import { form } from "../forms.js";
import { moment, t } from "../i18n.js";
import { nothing } from "../notices.js";
import { field } from "../parts.js";
import { address } from "../router.js";
import { sourceName } from "./memory_filters.js";
import { editMemory } from "./memory_actions.js";
import { plain } from "./hit.js";
import { noteAddress } from "./recall_detail.js";
import { wordDifference } from "./memory_history.js";

/** Ask for a sentence and show where it came from. */
export function whyDialog() {
  dialog(
    t("why.title"),
    (body, close) => {
      const said = el("textarea", { rows: "3", required: true, maxlength: "2000", dir: "auto" });
      said.autofocus = true;
      const found = el("div", { class: "stack", role: "status" });
      const look = async () => {
        const { sources } = await ask("recalls.why", { sentence: said.value.trim() });
        fill(found, sources.length > 0 ? el("ol", { class: "considered" }, sources.map((one) => source(one, close))) : nothing(t("why.none")));
      };
      body.append(form([field(t("why.sentence"), said, t("why.hint"))], t("why.look"), look, close), found);
    },
    { wide: true },
  );
}

function source({ recall, line, entry }, close) {
  const place = entry ? address("memories", entry.id) : noteAddress(line.citation ?? line.ref);
  const leave = (act) => () => (close(), act?.());
  const correct = entry?.state === "active"
    ? el("button", { type: "button", class: "quiet", "data-do": "correct", onclick: leave(() => editMemory(entry, () => {})) }, t("why.correct"))
    : el("a", { class: "link", href: place, onclick: leave() }, t("why.open"));
  return el(
    "li",
    {},
    el("p", { class: "then" }, entry ? line.text : plain(line.text)),
    line.now !== undefined && el("div", { class: "since" }, el("p", { class: "faint" }, t("recall.changed")), wordDifference(line.text, line.now)),
    !line.exists && el("p", { class: "faint" }, t("recall.gone")),
    el(
      "p",
      { class: "faint" },
      entry ? t("entry.writer", { who: entry.source ? sourceName(entry.source) : t(`who.${entry.trust === "owner" ? "owner" : "agent"}`) }) : (line.citation ?? line.ref),
      " · ",
      el("a", { href: address("recalls", recall.id), onclick: leave() }, t("why.recall", { at: moment(recall.at) })),
    ),
    correct,
  );
}
