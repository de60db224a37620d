// The panel for one memory beside any view. A link to a memory opens it there, with `peek` in the address, so that Back
// restores what was shown. A new tab opens the memory in its own place.

import { el } from "../dom.js";
import { t } from "../i18n.js";
import { go, here } from "../router.js";
import { memoryPanel } from "./memory.js";

const MEMORY = "#/memories/";

/** The panel of a view. `split` is the element with the columns: it gets the class `with-peek`. */
export function peekPanel(main, split) {
  let open = "";
  const node = el("aside", { class: "panel peek", "aria-label": t("entry.detail"), tabindex: "-1" });
  const panel = memoryPanel(node, { close, changed, forgotten: (ids) => ids.includes(open) && close() });

  function show(id) {
    const { view, id: shown, params } = here();
    go(view, shown, { ...Object.fromEntries(params), peek: id });
  }

  function close() {
    const last = open;
    show("");
    requestAnimationFrame(() => rows().find((row) => idOf(row) === last)?.focus());
  }

  // After a change, `id` is the memory to show; null if it no longer exists.
  function changed(id = open) {
    if (id === null) close();
    else if (id && id !== open) show(id);
    else panel.reload();
  }

  const idOf = (link) => decodeURIComponent(link.getAttribute("href").slice(MEMORY.length).split("?")[0]);
  const rows = () => [...main.querySelectorAll(`a[href^="${MEMORY}"]`)].filter((link) => !node.contains(link));

  function step(by) {
    const ids = [...new Set(rows().map(idOf))];
    const at = ids.indexOf(open);
    if (at >= 0 && ids[at + by]) {
      show(ids[at + by]);
      rows().find((row) => idOf(row) === ids[at + by]).scrollIntoView({ block: "nearest" });
    }
    return true;
  }

  function mark() {
    split.classList.toggle("with-peek", Boolean(open));
    if (!open) node.remove();
    else if (!node.isConnected) split.append(node);
    for (const row of rows()) (row.closest("article, li") ?? row).classList.toggle("open", idOf(row) === open);
  }

  function clicked(event) {
    const link = event.target.closest?.(`a[href^="${MEMORY}"]`);
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    show(idOf(link));
  }

  split.addEventListener("click", clicked);

  return {
    open: show,
    isOpen: () => Boolean(open),
    /** Show what the address says. Returns whether only the panel has changed. */
    show(route) {
      const wanted = route.params.get("peek") ?? "";
      const moved = wanted !== open;
      open = wanted;
      mark();
      panel.show(open);
      return moved;
    },
    mark,
    refresh: () => panel.refresh(),
    actions: () => panel.actions(),
    key(event) {
      if (!open) return false;
      const by = { j: 1, k: -1 }[event.key];
      return by ? step(by) : panel.key(event);
    },
    escape: () => (open ? (close(), true) : false),
    close: () => panel.stop(),
  };
}
