// Create elements from values. Texts become text nodes; nothing is ever parsed as HTML. Invisible characters become marks.

import { reveal, visiblePieces } from "./invisible.js";

const SVG = "http://www.w3.org/2000/svg";
const ALLOWED_LINK = /^(?:https?:\/\/|#|\/(?!\/))/i;

/** Create an element with attributes, listeners (`onclick: …` as functions) and children. Null and false are skipped. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Create an SVG element. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...kept(children));
  return node;
}

function set(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) {
    if (typeof value !== "function") throw new TypeError("a listener is a function");
    node.addEventListener(name.slice(2), value);
  } else if (name === "value" || name === "checked" || name === "disabled" || name === "indeterminate") {
    node[name] = value;
  } else if (name === "href" && !ALLOWED_LINK.test(value)) {
    return; // javascript:, data: and similar links are dropped
  } else if (name === "style" || name === "srcdoc" || name === "src") {
    throw new TypeError(`${name} is not set from here`);
  } else {
    const text = value === true ? "" : String(value);
    node.setAttribute(name, READ_ALOUD.has(name) ? reveal(text) : text);
  }
}

const READ_ALOUD = new Set(["title", "aria-label"]);

function kept(children) {
  const present = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  return present.flatMap((child) => (child instanceof Node ? [child] : drawn(String(child))));
}

function drawn(text) {
  return visiblePieces(text).map(([piece, isMark]) => (isMark ? el("span", { class: "invisible" }, piece) : piece));
}

/** Replace the content of an element. */
export function fill(node, ...children) {
  node.replaceChildren(...kept(children));
  return node;
}

const KEYS = ["data-id", "data-value", "data-filter", "data-type", "data-do", "href"];
const FOCUSABLE = "a, button, input, select, textarea, summary, [tabindex]";

/** Replace the content, and keep open details and the focus. If the focused element is gone, the next one gets it. */
export function refill(node, ...children) {
  const unfolded = [...node.querySelectorAll("[data-id] details[open]")].map((one) => idOf(one));
  const focus = focusIn(node);
  fill(node, ...children);
  for (const one of node.querySelectorAll("[data-id] details"))
    if (unfolded.includes(idOf(one))) one.open = true;
  focus()?.focus({ preventScroll: true });
  return node;
}

const idOf = (node) => node.closest("[data-id]").dataset.id;

/** Return a function that finds the focused element again: by its key, by its place in an element with an id, or else the
 *  next one of its kind. A button that deletes never gets the focus unasked. */
export function focusIn(node) {
  const inside = (one) => [...(one?.querySelectorAll(FOCUSABLE) ?? [])];
  const focused = document.activeElement;
  const at = inside(node).indexOf(focused);
  if (at < 0) return () => null;
  const key = KEYS.find((name) => focused.hasAttribute(name));
  const holder = focused.closest("[data-id]");
  const isHeld = holder && holder !== focused && node.contains(holder);
  const place = inside(holder).indexOf(focused);
  const same = (name, value) => node.querySelector(`[${name}="${CSS.escape(value)}"]`);
  const again = () => (isHeld ? inside(same("data-id", holder.dataset.id))[place] : key && same(key, focused.getAttribute(key)));
  const near = focused.matches("a, button") ? "a, button:not(.danger-text)" : focused.tagName;
  return () => again() ?? inside(node).slice(at).find((one) => one.matches(near));
}

/** Move the focus to an opened panel, unless the reader is typing. */
export function enter(node) {
  const at = document.activeElement;
  if (document.querySelector("dialog[open]")) return;
  if (at === document.body || at?.matches("main, a.row")) node.focus({ preventScroll: true });
}

/** Set a custom property, which style sheets use for lengths and colours from data. */
export function measure(node, name, value) {
  node.style.setProperty(name, String(value));
  return node;
}

/** Return text with the given ranges marked. */
export function marked(text, ranges) {
  const pieces = [];
  let at = 0;
  for (const [start, end] of ranges) {
    if (start > at) pieces.push(text.slice(at, start));
    pieces.push(el("mark", {}, text.slice(start, end)));
    at = end;
  }
  pieces.push(text.slice(at));
  return pieces;
}

/** Return a sentence whose `commands` and names in backticks are code. */
export function withCode(text) {
  return text.split(/`([^`]+)`/).map((piece, at) => (at % 2 ? el("code", {}, piece) : piece));
}

/** Listeners for a field that acts while the reader types, except during IME composition. */
export function typed(act) {
  return { oninput: (event) => event.isComposing || act(), oncompositionend: () => act() };
}

/** Return whether a key press belongs to a field. */
export function typing(event) {
  return event.target instanceof HTMLElement && event.target.matches('input:not([type="checkbox"]), textarea, select');
}

const ICONS = {
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zm5 12 4.5 4.5",
  inbox: "M4 13.5 6.5 5h11l2.5 8.5v6H4zM4 13.5h5l1 2.5h4l1-2.5h5",
  memories: "M5 4.5h14v15l-7-4-7 4z",
  about: "M4 4.5h7l9 9-6.5 6.5-9.5-9zM8.5 8.5h.01",
  notes: "M6 3.5h8l4.5 4.5v12.5H6zM14 3.5V8h4.5M9 12.5h6M9 16h4",
  talk: "M4 5.5h16v11H11l-4.5 4v-4H4zM8 9.5h8M8 12.5h5",
  recalls: "M4 12a8 8 0 1 0 2.5-5.8M4 4.5v4h4M12 8v4.5l3 2",
  health: "M3.5 12.5h4l2.5-7 4 13 2.5-6h4",
  close: "M6 6l12 12M18 6 6 18",
  back: "M14.5 5.5 8 12l6.5 6.5",
  theme: "M12 3.5a8.5 8.5 0 1 0 0 17zM12 3.5a8.5 8.5 0 0 1 0 17",
  language: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM3.5 12h17M12 3.5c5 5 5 12 0 17-5-5-5-12 0-17z",
  help: "M9 9a3 3 0 1 1 4.2 2.8c-.8.4-1.2 1-1.2 1.9v.3M12 17.5h.01",
  folder: "M3.5 6.5h6l2 2.5h9v9.5h-17z",
  sync: "M4.5 12a7.5 7.5 0 0 1 13-5l2 2M19.5 5v4h-4M19.5 12a7.5 7.5 0 0 1-13 5l-2-2M4.5 19v-4h4",
};

/** An icon, hidden from screen readers: a text is next to it. */
export function icon(name) {
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: ICONS[name] }),
  );
}

/** The logo: the rings of a tree. */
export function rings() {
  return svg(
    "svg",
    { class: "rings", viewBox: "0 0 32 32", "aria-hidden": "true", focusable: "false" },
    svg("circle", { cx: 16, cy: 17, r: 2 }),
    svg("path", { d: "M12.2 13.6a5.1 5.1 0 1 0 7.6 0" }),
    svg("path", { d: "M9.6 22.6a8.4 8.4 0 1 1 12.8 0" }),
    svg("path", { d: "M6.4 23.6a11.6 11.6 0 0 1 19.2-13" }),
  );
}
