// What is said in place of content: that it loads, that there is none, that it failed and how to try again.

import { el, fill } from "./dom.js";
import { coded, t } from "./i18n.js";

export function loading() {
  return el("p", { class: "loading", role: "status" }, t("notice.loading"));
}

export function nothing(text, ...more) {
  return el("div", { class: "nothing" }, el("p", {}, text), more);
}

/** One sentence on what went wrong, with a way to try again; what is not there does not come by that. */
export function failure(error, again) {
  const text = sentence(error);
  if (error?.status === 404) again = null;
  return el(
    "div",
    { class: "failure", role: "alert" },
    el("p", {}, text),
    again && el("button", { type: "button", class: "quiet", onclick: again }, t("notice.retry")),
  );
}

export function sentence(error) {
  if (error?.status === 401) return t("ended.short");
  if (error?.message) return capital(coded(error.code, error.details, error.message));
  return error?.status ? t("notice.failed", { status: error.status }) : t("notice.unreachable");
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Shown instead of everything when the session is over: a new link is made on the machine itself. */
export function ended() {
  return el(
    "main",
    { class: "ended", id: "main" },
    el("h1", {}, t("ended.title")),
    el("p", {}, t("ended.how")),
    el("pre", { tabindex: "0" }, el("code", {}, "memoriter open")),
    el("p", { class: "faint" }, t("ended.why")),
  );
}

const STAYS_MS = 10_000;

let corner = null;
let timer = 0;
let offered = null; // what can be done about what was said last

/** Where `said` speaks; made once, for a region that comes with its text is not read out. */
export function speaking() {
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

/** Say that something was done, with one action, for a while; who is at it is not hurried. */
export function said(text, label = "", action = null) {
  clearTimeout(timer);
  offered = action;
  const button =
    action &&
    el(
      "button",
      { type: "button", class: "link", "aria-keyshortcuts": "u", onclick: takeUp },
      label,
      el("kbd", { "aria-hidden": "true" }, "U"),
    );
  fill(corner, el("div", { class: "said-text" }, el("span", {}, text), button));
  timer = setTimeout(hush, STAYS_MS);
}

/** Do what is offered in the corner; whether there was anything. */
export function takeUp() {
  const action = offered;
  if (!action) return false;
  hush();
  action();
  return true;
}
