// The keyboard: single keys for what is done often, `g` and a letter to go somewhere. Fields keep their keys.

import { typing } from "./dom.js";

const PLACES = { s: "search", m: "memories", n: "notes", r: "recalls", p: "map", h: "health" };
const CHORD_MS = 1200;

/** Listen; `does` says what `focusSearch`, `go`, `help`, `undo`, `escape` and `key` do. */
export function useKeys(does) {
  let chord = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return; // a dialog knows its own keys
    if (event.key === "Escape") {
      if (does.escape(event)) event.preventDefault();
      return;
    }
    if (typing(event)) return;
    if (event.timeStamp < chord && PLACES[event.key]) {
      chord = 0;
      event.preventDefault();
      does.go(PLACES[event.key]);
      return;
    }
    chord = event.key === "g" ? event.timeStamp + CHORD_MS : 0;
    const own = { "/": does.focusSearch, "?": does.help, u: does.undo };
    const done = own[event.key] ?? (() => does.key(event));
    if (done(event)) event.preventDefault();
  });
}

/** Move the focus through a list's rows with j and k; the rows are links or buttons. */
export function step(container, selector, event) {
  const by = { j: 1, k: -1 }[event.key];
  if (!by) return false;
  const rows = [...container.querySelectorAll(selector)];
  if (rows.length === 0) return false;
  const open = container.querySelector(".open .row, .row.open, .row[aria-current]"); // where the focus came from
  const now = rows.indexOf(document.activeElement?.closest(selector) ?? open);
  const next =
    rows[Math.max(0, Math.min(rows.length - 1, now < 0 ? (by > 0 ? 0 : rows.length - 1) : now + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}
