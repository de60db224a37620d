// The selected memories of the table, and the actions on several of them.

import { el, fill } from "../dom.js";
import { t, tn } from "../i18n.js";
import { failure } from "../notices.js";
import { invisibleWarning } from "../parts.js";
import { download } from "./exchange.js";
import { forgetMemories } from "./forgetting.js";
import { mergeMemories, settleStaged, tagMemories } from "./memory_actions.js";

const MAX_PICKED = 500; // memories in one action

/** `draw` draws the rows again. `all` returns the memories that match the filters, at most `MAX_PICKED`. */
export function picking(changed, forgotten, { draw, all }) {
  const chosen = new Map(); // id → entry
  let whole = false; // all were selected
  const node = el("div", { class: "several", role: "group", "aria-label": t("entry.pick") });
  let every = null;

  function show() {
    const picked = [...chosen.values()];
    const staged = picked.filter((entry) => entry.state === "staged").map((entry) => entry.id);
    const active = picked.filter((entry) => entry.state === "active");
    if (every) every.checked = whole;
    if (every) every.indeterminate = chosen.size > 0 && !whole;
    node.classList.toggle("on", picked.length > 0);
    const button = (name, act, kind = "quiet") =>
      el("button", { type: "button", class: kind, onclick: act }, t(`do.${name}`));
    fill(
      node,
      picked.length > 0 && [
        el("span", {}, tn("entry.picked", picked.length), picked.length >= MAX_PICKED && ` ${t("entry.picked.most")}`),
        staged.length > 0 && button("approve", () => settle("approve", staged)),
        staged.length > 0 && button("reject", () => settle("reject", staged)),
        active.length > 1 && button("merge", () => mergeMemories(active, changed)),
        active.length > 0 && button("tag", () => tagMemories(active, changed)),
        button("download", () => download({}, picked.map((entry) => entry.id))),
        button("forget", () => forgetMemories(picked, forgotten), "quiet danger-text"),
        button("clear", () => (clear(), draw()), "link"),
        invisibleWarning(...picked.flatMap((entry) => [entry.text, ...(entry.tags ?? [])])),
      ],
    );
  }

  function clear() {
    chosen.clear();
    whole = false;
    show();
  }

  async function pickAll(box) {
    try {
      for (const entry of box.checked ? await all() : []) chosen.set(entry.id, entry);
      if (!box.checked) chosen.clear();
      whole = box.checked;
      show();
      draw();
    } catch (error) {
      node.append(failure(error, null));
    }
  }

  async function settle(how, ids) {
    try {
      await settleStaged(how, ids, changed);
      changed();
    } catch (error) {
      node.append(failure(error, null));
    }
  }

  return {
    node,
    clear,
    any: () => chosen.size > 0,
    /** The list is new: `entries` are versions that actions use from now on, `gone` are ids that left it. */
    renew(entries, gone) {
      for (const id of gone) chosen.delete(id);
      for (const entry of entries) if (chosen.has(entry.id)) chosen.set(entry.id, entry);
      show();
    },
    /** The checkbox that selects all. */
    box() {
      every = el("input", {
        type: "checkbox",
        checked: whole,
        indeterminate: chosen.size > 0 && !whole,
        "aria-label": t("entry.pick.all"),
        "data-value": "all",
        onchange: (event) => pickAll(event.target),
      });
      return every;
    },
    /** The checkbox of one memory. */
    tick(entry) {
      const box = el("input", {
        type: "checkbox",
        checked: chosen.has(entry.id),
        "aria-label": t("entry.pick.one", { text: entry.text.slice(0, 60) }),
        onchange: () => {
          box.checked ? chosen.set(entry.id, entry) : chosen.delete(entry.id);
          whole = false;
          show();
        },
      });
      return box;
    },
  };
}
