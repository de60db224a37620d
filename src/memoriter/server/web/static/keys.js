// Keyboard shortcuts: single keys for frequent actions, `g` and a letter to open a view. Fields keep their keys.

import { ask } from "./dialogs.js";
import { el, typing } from "./dom.js";
import { t } from "./i18n.js";

const VIEW_KEYS = { s: "search", i: "inbox", m: "memories", t: "about", n: "notes", r: "recalls", h: "health" };
const CHORD_MS = 1200;

/** Install the shortcuts. `does` has the functions `focusSearch`, `go`, `help`, `palette`, `undo`, `escape` and `key`. */
export function useKeys(does) {
  let chord = 0;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      does.palette();
      return;
    }
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return; // dialogs handle their own keys
    if (event.key === "Escape") {
      if (does.escape(event)) event.preventDefault();
      return;
    }
    if (typing(event)) return;
    if (event.timeStamp < chord && VIEW_KEYS[event.key]) {
      chord = 0;
      event.preventDefault();
      does.go(VIEW_KEYS[event.key]);
      return;
    }
    chord = event.key === "g" ? event.timeStamp + CHORD_MS : 0;
    const own = { "/": does.focusSearch, "?": does.help, u: does.undo };
    const done = own[event.key] ?? (() => does.key(event));
    if (done(event)) event.preventDefault();
  });
}

/** Move the focus through the rows of a list with j and k. The rows are links or buttons. */
export function step(container, selector, event) {
  const by = { j: 1, k: -1 }[event.key];
  if (!by) return false;
  const rows = [...container.querySelectorAll(selector)];
  if (rows.length === 0) return false;
  const open = container.querySelector(".open .row, .row.open, .row[aria-current]"); // start from the open row
  const now = rows.indexOf(document.activeElement?.closest(selector) ?? open);
  const next =
    rows[Math.max(0, Math.min(rows.length - 1, now < 0 ? (by > 0 ? 0 : rows.length - 1) : now + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

/** Open the item after or before the open one with j and k. */
export function stepOpen(items, open, event, show) {
  const by = { j: 1, k: -1 }[event.key];
  const at = items.findIndex((item) => item.id === open);
  if (!by || at < 0) return false;
  if (items[at + by]) show(items[at + by].id);
  return true;
}

const KEYS = [
  ["Ctrl+K", "palette.title"],
  ["/", "help.search"],
  ["j k", "help.step"],
  ["Enter", "help.open"],
  ["Esc", "help.escape"],
  ["g s", "view.search"],
  ["g i", "view.inbox"],
  ["g m", "view.memories"],
  ["g t", "view.about"],
  ["g n", "view.notes"],
  ["g r", "view.recalls"],
  ["g h", "view.health"],
  ["e", "help.edit"],
  ["a r l", "help.settle"],
  ["x", "help.pick"],
  ["f", "filter.all"],
  ["u", "help.undo"],
  ["?", "help.title"],
];

/** Show the shortcuts in a dialog. */
export function help() {
  ask(t("help.title"), (body) => {
    body.append(
      el(
        "dl",
        { class: "keys" },
        KEYS.map(([keys, text]) => [
          el(
            "dt",
            {},
            keys.split(" ").map((key) => el("kbd", {}, key)),
          ),
          el("dd", {}, t(text)),
        ]),
      ),
    );
  });
}
