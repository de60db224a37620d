// Modal dialogs. They use the browser's dialog element, which keeps the focus inside.

import { el, fill, icon } from "./dom.js";
import { sentence } from "./notices.js";
import { t } from "./i18n.js";

/** Open a dialog. `fillIn(body, close)` adds its content. */
export function ask(title, fillIn, { wide = false } = {}) {
  const heading = el("h2", { id: "dialog-title" }, title);
  const body = el("div", { class: "dialog-body" });
  const box = el("dialog", { "aria-labelledby": "dialog-title", class: wide ? "wide" : null });
  const close = () => box.close();
  const cross = el(
    "button",
    { type: "button", class: "plain cross", "aria-label": t("do.close"), onclick: close },
    icon("close"),
  );
  box.append(el("header", {}, heading, cross), body);
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => event.target === box && close());
  document.body.append(box);
  fillIn(body, close);
  box.showModal();
  return close;
}

/** The buttons below a dialog. They are disabled while the action runs; an error appears next to them. */
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

/** A form that runs the action when it is submitted. */
export function form(children, label, act, close, options) {
  const { row, run } = actions(label, act, close, options);
  return el(
    "form",
    {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        run();
      },
    },
    children,
    row,
  );
}
