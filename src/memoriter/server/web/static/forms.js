// Forms: one button that runs an action, an error next to it, Ctrl+Enter, and a draft of what was typed.

import { draftOf, dropDraft, endDraft, keepDraft } from "./drafts.js";
import { el, fill } from "./dom.js";
import { ago, t } from "./i18n.js";
import { sentence } from "./notices.js";

/** The buttons below a form. They are disabled while the action runs; an error appears next to them. */
export function actions(label, act, close, { danger = false } = {}) {
  const wrong = el("p", { class: "wrong", role: "alert" });
  const yes = el("button", { type: "submit", class: danger ? "danger" : "primary" }, label);
  const no = el("button", { type: "button", class: "quiet", onclick: close }, t("do.cancel"));
  const row = el("div", { class: "dialog-actions" }, wrong, no, yes);
  const run = async () => {
    yes.disabled = true;
    fill(yes, label, " …"); // the action may take a while
    fill(wrong);
    try {
      await act();
    } catch (error) {
      fill(wrong, sentence(error));
    } finally {
      fill(yes, label);
      yes.disabled = false;
    }
  };
  return { row, run };
}

/** A form that runs the action when it is submitted. `draft` is `{ key, base }`: what is typed is kept under the key until
 *  the action succeeds. The action returns false if it did not finish, and keeps the draft. */
export function form(children, label, act, close, { danger = false, draft = null } = {}) {
  const finish = async () => {
    if ((await act()) !== false && draft) endDraft(draft);
  };
  const { row, run } = actions(label, finish, close, { danger });
  const node = el(
    "form",
    {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        run();
      },
      onkeydown: (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) (event.preventDefault(), node.requestSubmit());
      },
    },
    children,
    row,
  );
  if (draft) withDraft(node, draft);
  return node;
}

function withDraft(node, draft) {
  const { key } = draft;
  const first = valuesOf(node);
  const kept = draftOf(key);
  const save = () => {
    if (draft.ended) return;
    if (same(valuesOf(node), first)) dropDraft(key);
    else keepDraft(key, valuesOf(node), draft.base);
  };
  node.addEventListener("input", save);
  node.addEventListener("change", save);
  if (!kept || same(kept.values, first)) return;
  setValues(node, kept.values);
  const note = el(
    "p",
    { class: "hint draft", role: "status" },
    t("draft.restored", { ago: ago(kept.at) }),
    " ",
    el(
      "button",
      {
        type: "button",
        class: "link",
        onclick: () => {
          setValues(node, first);
          dropDraft(key);
          note.remove();
          node.dispatchEvent(new Event("input"));
        },
      },
      t("draft.discard"),
    ),
  );
  node.prepend(note);
}

const controls = (node) => [...node.querySelectorAll("input, textarea, select")];
const isTick = (control) => control.type === "radio" || control.type === "checkbox";
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const valuesOf = (node) => controls(node).map((control) => (isTick(control) ? control.checked : control.value));

function setValues(node, values) {
  controls(node).forEach((control, index) => {
    if (isTick(control)) control.checked = values[index] === true;
    else control.value = values[index] ?? "";
  });
}
