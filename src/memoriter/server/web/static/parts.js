// Small parts that several views share: stars, labels, fields, one row for a memory.

import { el } from "./dom.js";
import { invisible } from "./invisible.js";
import { ago, moment, number, t } from "./i18n.js";
import { address, go } from "./router.js";

export const TYPES = [
  "user_preference",
  "project_context",
  "technical_decision",
  "workflow",
  "fact",
  "skill",
  "relationship",
  "other",
];
export const STATES = ["active", "staged", "superseded", "expired", "rejected"];
export const TRUST_LEVELS = ["owner", "agent", "relayed", "untrusted"];

/** Importance from 1 to 5, as stars with a text alternative. */
export function stars(value) {
  const whole = Math.max(0, Math.min(5, Math.round(value)));
  return el(
    "span",
    {
      class: "stars",
      role: "img",
      "aria-label": t("entry.importance.of", { n: number(value, 1) }),
      title: number(value, 1),
    },
    "★".repeat(whole),
    el("span", { class: "off" }, "★".repeat(5 - whole)),
  );
}

export function label(kind, name) {
  return el("span", { class: "label", "data-kind": kind, "data-name": name }, t(`${kind}.${name}`));
}

/** A warning if texts contain invisible characters, which can make a text read as another. */
export function invisibleWarning(...texts) {
  const names = invisible(...texts.filter(Boolean));
  return names.length > 0 && el("p", { class: "warning", role: "note" }, t("invisible.warning", { names: names.join(", ") }));
}

/** The trust of a text. */
export function trust(name) {
  return el(
    "span",
    { class: "label", "data-kind": "trust", "data-name": name, title: t(`trust.${name}.why`) },
    t(`trust.${name}`),
  );
}

export function tags(names) {
  return (names ?? []).map((name) => el("span", { class: "tag", title: name }, name));
}

/** A path whose parts keep their order, even if a name is written from right to left. */
export function pathName(path) {
  return path.split("/").flatMap((part, index) => [index > 0 && "/", el("bdi", { dir: "ltr" }, part)]);
}

export function when(seconds) {
  if (!Number.isFinite(seconds)) return el("span", { class: "faint" }, "–");
  return el("time", { datetime: iso(seconds), title: moment(seconds) }, ago(seconds));
}

function iso(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

let fields = 0;

/** A control with its label. */
export function field(text, control, hint = "") {
  control.id ||= `field-${++fields}`;
  return el(
    "div",
    { class: "field" },
    el("label", { for: control.id }, text),
    control,
    hint && el("p", { class: "hint" }, hint),
  );
}

/** A select element. Options are `[value, text]`. */
export function choice(options, value, onchange, attributes = {}) {
  const select = el(
    "select",
    { ...attributes, onchange: () => onchange?.(select.value) },
    options.map(([name, text]) => el("option", { value: name }, text)),
  );
  select.value = options.some(([name]) => name === value) ? value : (options[0]?.[0] ?? "");
  return select;
}

/** A group of buttons of which one is pressed. */
export function segments(name, options, value, onchange) {
  return el(
    "div",
    { class: "segments", role: "group", "aria-label": name },
    options.map(([key, text]) =>
      el(
        "button",
        {
          type: "button",
          "aria-pressed": key === value ? "true" : "false",
          "data-value": key,
          onclick: () => onchange(key),
        },
        text,
      ),
    ),
  );
}

/** The title and the switch of the two views about the program itself. */
export function programHead(shown, ...buttons) {
  const views = ["health", "operate"].map((name) => [name, t(`view.${name}`)]);
  return el("header", { class: "view-head" }, el("h1", {}, t(`view.${shown}`)), segments(t("frame.views"), views, shown, (name) => go(name)), buttons);
}

/** One memory as a row that links to it. */
export function entryLine(entry, ...more) {
  return el(
    "a",
    { class: "entry-line row", href: address("memories", entry.id) },
    el("span", { class: "entry-text" }, entry.text || t("entry.forgotten.text")),
    el("span", { class: "entry-facts" }, label("type", entry.type), stars(entry.importance), more),
  );
}

/** Facts in two columns. Facts without a value are left out. */
export function facts(pairs) {
  return el(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
      .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );
}

/** Convert a time to the value of a date field, `2026-02-08`, in the reader's time zone; and back. */
export function dateField(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const date = new Date(seconds * 1000);
  const two = (value) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function fromDateField(text, { end = false } = {}) {
  if (!text) return null;
  const [year, month, date] = text.split("-").map(Number);
  const time = new Date(year, month - 1, date + (end ? 1 : 0)).getTime() / 1000;
  return Number.isFinite(time) ? time : null;
}
