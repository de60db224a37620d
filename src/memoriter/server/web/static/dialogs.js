// Modal dialogs. They use the browser's dialog element, which keeps the focus inside.

import { el, focusIn, icon } from "./dom.js";
import { draftOf } from "./drafts.js";
import { t } from "./i18n.js";
import { announce } from "./notices.js";

/** Open a dialog. `fillIn(body, close)` adds its content. `draft` is the key of the draft that its form keeps. */
export function ask(title, fillIn, { wide = false, draft = "" } = {}) {
  const heading = el("h2", { id: "dialog-title" }, title);
  const body = el("div", { class: "dialog-body" });
  const box = el("dialog", { "aria-labelledby": "dialog-title", class: wide ? "wide" : null });
  const close = () => box.close();
  const opener = focusIn(document.getElementById("main"));
  const cross = el(
    "button",
    { type: "button", class: "plain cross", "aria-label": t("do.close"), onclick: close },
    icon("close"),
  );
  box.append(el("header", {}, heading, cross), body);
  box.addEventListener("close", () => {
    box.remove();
    if (document.activeElement === document.body) opener()?.focus({ preventScroll: true }); // the view has changed meanwhile
    if (draft && draftOf(draft)) announce(t("draft.kept"));
  });
  box.addEventListener("click", (event) => event.target === box && close());
  document.body.append(box);
  fillIn(body, close);
  box.showModal();
  if (document.activeElement === cross) body.querySelector("[type=submit]")?.focus();
  return close;
}
