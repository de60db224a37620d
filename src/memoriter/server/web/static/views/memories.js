// Memories: a table with filters, and a panel for one memory. The panel is in memory.js, the actions are in
// memory_actions.js.

import { isAborted, newest, news } from "../api.js";
import { el, fill, refill } from "../dom.js";
import { number, t, tn } from "../i18n.js";
import { step, stepOpen } from "../keys.js";
import { failure, loading, nothing } from "../notices.js";
import { label, stars, tags, when } from "../parts.js";
import { address, amend, go } from "../router.js";
import { forgetBy } from "./forgetting.js";
import { picking } from "./memories_picked.js";
import { memoryPanel } from "./memory.js";
import { addMemory } from "./memory_actions.js";
import { asArguments, filterBar } from "./memory_filters.js";

const PAGE_SIZE = 50;
const SORTS = { importance: "importance", created: "created" }; // by column

export function memoriesView(main) {
  const list = newest();
  const isNew = news();
  let filters = {};
  let entries = [];
  let total = 0;
  let cursor = null;
  let open = "";

  const filtering = filterBar((changed) => {
    filters = changed;
    amend("memories", open, filters);
    picked.clear();
    load();
  });
  const summary = el("p", { class: "summary", role: "status", "aria-live": "polite" });
  const table = el("div", { class: "table-place" });
  const picked = picking(changed, forgotten, () => show());
  const aside = el("aside", { class: "panel", "aria-label": t("entry.detail"), tabindex: "-1" });
  const panel = memoryPanel(aside, { close, changed, forgotten, settled });
  const split = el(
    "div",
    { class: "split" },
    el("div", { class: "split-list" }, filtering.node, summary, picked.node, table),
    aside,
  );
  fill(
    main,
    el(
      "header",
      { class: "view-head" },
      el("h1", {}, t("view.memories")),
      el(
        "button",
        { type: "button", class: "quiet", onclick: () => forgetBy({ session: filters.session }, forgotten) },
        t("forget.open"),
      ),
      el("button", { type: "button", class: "primary", onclick: () => addMemory(changed) }, t("entry.add")),
    ),
    split,
  );

  async function load({ quiet = false, more = false } = {}) {
    if (!quiet && !more) fill(table, loading());
    try {
      const limit = quiet ? Math.min(500, Math.max(PAGE_SIZE, entries.length)) : PAGE_SIZE;
      const answer = await list("entries.list", {
        ...asArguments(filters),
        limit,
        ...(more && cursor && { cursor }),
      });
      if (!isNew([answer, more]) && quiet) return;
      entries = more ? [...entries, ...answer.entries] : answer.entries;
      total = answer.total;
      cursor = answer.cursor ?? null;
      show();
    } catch (error) {
      if (isAborted(error)) return;
      isNew.forget();
      fill(
        table,
        failure(error, () => load()),
      );
    }
  }

  function show() {
    fill(summary, tn("entry.found", total), filtering.active() && clearing());
    picked.among(entries);
    if (entries.length === 0) {
      fill(table, noMemories(filtering.active(), () => addMemory(changed)));
      return;
    }
    const head = ["pick", "text", "type", "importance", "trust", "created", "expires"];
    refill(
      table,
      el(
        "table",
        { class: "entries" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            head.map((name) =>
              el(
                "th",
                { scope: "col", class: `col-${name}`, "aria-sort": sortedBy(name) ? "descending" : null },
                name === "pick" ? picked.all() : heading(name),
              ),
            ),
          ),
        ),
        el("tbody", {}, entries.map(row)),
      ),
      cursor &&
        el(
          "button",
          { type: "button", class: "quiet more", "data-value": "more", onclick: () => load({ more: true }) },
          t("do.more"),
          el("span", { class: "faint" }, ` ${number(entries.length)} / ${number(total)}`),
        ),
    );
    markOpen();
  }

  function row(entry) {
    return el(
      "tr",
      {
        "data-id": entry.id,
        "data-state": entry.state,
        onclick: (event) => {
          if (event.target.closest("a, input, button") || !getSelection().isCollapsed) return;
          go("memories", entry.id, filters);
        },
      },
      el("td", { class: "col-pick" }, picked.tick(entry)),
      el(
        "td",
        { class: "col-text" },
        el(
          "div",
          { class: "statement-line" },
          el("a", { class: "row", href: address("memories", entry.id, filters) }, entry.text),
          entry.state !== "active" && label("state", entry.state),
          tags(entry.tags),
        ),
      ),
      el("td", { class: "col-type" }, label("type", entry.type)),
      el("td", { class: "col-importance" }, stars(entry.importance)),
      el("td", { class: "col-trust" }, label("trust", entry.trust)),
      el("td", { class: "col-created" }, when(entry.createdAt)),
      el(
        "td",
        { class: "col-expires" },
        entry.expiresAt ? when(entry.expiresAt) : el("span", { class: "faint" }, t("entry.never")),
      ),
    );
  }

  const sortedBy = (name) => name in SORTS && (filters.sort ?? (filters.q ? "score" : "created")) === SORTS[name];

  function heading(name) {
    if (!(name in SORTS)) return t(`entry.${name}`);
    const sort = name === "created" && !filters.q ? "" : SORTS[name];
    const attributes = { type: "button", class: "plain sort", "data-value": `sort-${name}` };
    return el(
      "button",
      { ...attributes, onclick: () => go("memories", open, { ...filters, sort }) },
      t(`entry.${name}`),
      el("span", { "aria-hidden": "true" }, sortedBy(name) ? " ↓" : ""),
    );
  }

  /** The memory before or after the open one. */
  function beside(by) {
    const at = entries.findIndex((entry) => entry.id === open);
    return at < 0 ? undefined : entries[at + by];
  }

  // In the list of waiting memories, the next one opens after a decision.
  function settled() {
    const next = filters.state === "staged" ? (beside(1) ?? beside(-1)) : undefined;
    if (!next) return changed(filters.state === "staged" ? null : open);
    picked.clear();
    load({ quiet: true });
    return go("memories", next.id, filters);
  }

  function key(event) {
    const show = (id) => {
      go("memories", id, filters);
      table.querySelector(`[data-id="${CSS.escape(id)}"]`)?.scrollIntoView({ block: "nearest" });
    };
    if (stepOpen(entries, open, event, show)) return true;
    if (event.key === "x") {
      const row = document.activeElement?.closest("tr[data-id]") ?? table.querySelector("tr.open");
      row?.querySelector("input")?.click();
      return Boolean(row);
    }
    return step(table, ".row", event) || panel.key(event);
  }

  const clearing = () =>
    el("button", { type: "button", class: "link", onclick: () => go("memories") }, t("do.clear.filters"));

  // After a change, `id` is the memory to show; null if it no longer exists.
  function changed(id = open) {
    picked.clear();
    load({ quiet: true });
    if (id === null) close();
    else if (id && id !== open) go("memories", id, filters);
    else panel.reload();
  }

  function forgotten(ids) {
    picked.clear();
    load({ quiet: true });
    if (ids.includes(open)) close();
  }

  function markOpen() {
    for (const one of table.querySelectorAll("tr[data-id]"))
      one.classList.toggle("open", one.dataset.id === open);
    split.classList.toggle("with-panel", Boolean(open));
  }

  function close() {
    const last = open;
    go("memories", "", filters);
    requestAnimationFrame(() => table.querySelector(`[data-id="${CSS.escape(last)}"] .row`)?.focus());
  }

  return {
    async show(route) {
      const wanted = filtering.read(route.params);
      const same = entries.length > 0 && JSON.stringify(wanted) === JSON.stringify(filters);
      filters = wanted;
      open = route.id;
      markOpen();
      panel.show(open);
      if (!same) await load();
    },
    refresh(events) {
      if (!["entries", "capture", "sync", "recall"].some((kind) => events.has(kind))) return;
      if (["entries", "capture"].some((kind) => events.has(kind)))
        (load({ quiet: true }), filtering.facets());
      panel.refresh();
    },
    focusSearch: () => filtering.focus(),
    key,
    escape: () => (open ? (close(), true) : false),
    close: () => (list.stop(), filtering.stop(), panel.stop()),
  };
}

export function noMemories(filtered, add) {
  if (filtered)
    return nothing(
      t("entry.none.filtered"),
      el("p", {}, el("a", { href: address("memories") }, t("do.clear.filters"))),
    );
  return nothing(
    t("entry.none"),
    el("p", { class: "faint" }, t("entry.none.how")),
    el("p", {}, el("button", { type: "button", class: "quiet", onclick: add }, t("entry.add"))),
  );
}
