// Notices in place of content: loading, empty, failed. Also the message in the corner after an action.

import { el, fill, withCode } from "./dom.js";
import { coded, t } from "./i18n.js";

export function loading() {
  return el("p", { class: "loading", role: "status" }, t("notice.loading"));
}

export function nothing(text, ...more) {
  return el("div", { class: "nothing" }, el("p", {}, text), more);
}

/** An error message with a retry button. Retrying does not help if something does not exist. */
export function failure(error, again) {
  const text = sentence(error);
  if (error?.status === 404) again = null;
  return el(
    "div",
    { class: "failure", role: "alert" },
    el("p", {}, withCode(text)),
    again && el("button", { type: "button", class: "quiet", onclick: again }, t("notice.retry")),
  );
}

export function sentence(error) {
  if (error?.status === 401) return t("ended.short");
  if (error?.message) return capital(coded(error.code, error.details, error.message));
  return error?.status ? t("notice.failed", { status: error.status }) : t("notice.unreachable");
}

// A path or a name at the beginning keeps its letters.
const capital = (text) => (/^\S*[./_]\S/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));

/** Shown instead of the page when the session has ended. */
export function ended(drafts = 0) {
  return el(
    "main",
    { class: "ended", id: "main" },
    el("h1", {}, t("ended.title")),
    el("p", {}, t("ended.how")),
    el("pre", { tabindex: "0" }, el("code", {}, "memoriter open")),
    drafts > 0 && el("p", {}, t("ended.drafts")),
    el("p", { class: "faint" }, t("ended.why")),
  );
}

const STAYS_MS = 10_000;
const NEW_MS = 2_000;

let corner = null;
let timer = 0;
let offered = null; // the action that the current message offers
let said = 0; // when the current message appeared

/** The region for `announce`. It is created once, because screen readers ignore a region that appears with its text. */
export function messageRegion() {
  const wait = () => clearTimeout(timer);
  const go = () => (timer = setTimeout(hush, STAYS_MS));
  corner = el("div", {
    class: "said",
    role: "status",
    "aria-live": "polite",
    onpointerenter: wait,
    onpointerleave: go,
    onfocusin: wait,
    onfocusout: go,
  });
  return corner;
}

function hush() {
  clearTimeout(timer);
  offered = null;
  fill(corner);
}

/** Remove a message about another view. A message of this moment may be about the way here, and stays. */
export function hushOld() {
  if (performance.now() - said > NEW_MS) hush();
}

/** Show for a while what was done, with one action and one link `{ href, text }`. It stays while the reader points at it
 *  or focuses it. */
export function announce(text, label = "", action = null, link = null) {
  clearTimeout(timer);
  offered = action;
  said = performance.now();
  const button =
    action &&
    el(
      "button",
      { type: "button", class: "link", "aria-keyshortcuts": "u", onclick: runOffer },
      label,
      el("kbd", { "aria-hidden": "true" }, "U"),
    );
  fill(corner, el("div", { class: "said-text" }, el("span", {}, withCode(text)), link && el("a", { class: "link", href: link.href }, link.text), button));
  timer = setTimeout(hush, STAYS_MS);
}

/** Run the offered action. Returns whether there was one. */
export function runOffer() {
  const action = offered;
  if (!action) return false;
  hush();
  action();
  return true;
}
