// Memories: what was learned, as a table with filters; one of them opens beside it. What can be done to it is in
// memory_actions.js, what is shown of it in memory.js.

import { givenUp, news, newest } from "../api.js";
import { el, fill, refill } from "../dom.js";
import { number, t, tn } from "../i18n.js";
import { step } from "../keys.js";
import { failure, loading, nothing } from "../notices.js";
import { label, stars, tags, when } from "../parts.js";
import { address, amend, go } from "../router.js";
import { memoryPanel } from "./memory.js";
import { addMemory, mergeMemories, settleStaged } from "./memory_actions.js";
import { asArguments, filterBar } from "./memory_filters.js";

const PAGE = 50;

export function memoriesView(main) {
  const list = newest();
  const isNew = news();
  const chosen = new Map(); // id → entry, ticked for an action on several
  let filters = {};
  let entries = [];
  let total = 0;
  let cursor = null;
  let open = "";

  const filtering = filterBar((changed) => {
    filters = changed;
    amend("memories", open, filters);
    chosen.clear();
    load();
  });
  const summary = el("p", { class: "summary", role: "status", "aria-live": "polite" });
  const several = el("div", { class: "several" });
  const table = el("div", { class: "table-place" });
  const aside = el("aside", { class: "panel", "aria-label": t("entry.detail") });
  const panel = memoryPanel(aside, { close, changed, forgotten: () => (close(), load({ quiet: true })) });
  const split = el(
    "div",
    { class: "split" },
    el("div", { class: "split-list" }, filtering.node, summary, several, table),
    aside,
  );
  fill(
    main,
    el(
      "header",
      { class: "view-head" },
      el("h1", {}, t("view.memories")),
      el("button", { type: "button", class: "primary", onclick: () => addMemory(changed) }, t("entry.add")),
    ),
    split,
  );

  async function load({ quiet = false, more = false } = {}) {
    if (!quiet && !more) fill(table, loading());
    try {
      const limit = quiet ? Math.min(200, Math.max(PAGE, entries.length)) : PAGE;
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
      if (!givenUp(error))
        fill(
          table,
          failure(error, () => load()),
        );
    }
  }

  function show() {
    fill(summary, tn("entry.found", total));
    showSeveral();
    if (entries.length === 0) {
      fill(table, nothing(t(filtering.active() ? "entry.none.filtered" : "entry.none")));
      return;
    }
    const head = ["pick", "text", "type", "importance", "origin", "created", "expires"];
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
                { scope: "col", class: `col-${name}` },
                name === "pick" ? el("span", { class: "hidden" }, t("entry.pick")) : t(`entry.${name}`),
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
    const tick = el("input", {
      type: "checkbox",
      checked: chosen.has(entry.id),
      "aria-label": t("entry.pick.one", { text: entry.text.slice(0, 60) }),
      onchange: () => {
        tick.checked ? chosen.set(entry.id, entry) : chosen.delete(entry.id);
        showSeveral();
      },
    });
    return el(
      "tr",
      { "data-id": entry.id, "data-state": entry.state },
      el("td", { class: "col-pick" }, tick),
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
      el("td", { class: "col-origin" }, label("origin", entry.origin)),
      el("td", { class: "col-created" }, when(entry.createdAt)),
      el(
        "td",
        { class: "col-expires" },
        entry.expiresAt ? when(entry.expiresAt) : el("span", { class: "faint" }, t("entry.never")),
      ),
    );
  }

  function showSeveral() {
    for (const id of [...chosen.keys()]) if (!entries.some((entry) => entry.id === id)) chosen.delete(id);
    const picked = [...chosen.values()];
    const staged = picked.filter((entry) => entry.state === "staged").map((entry) => entry.id);
    const active = picked.filter((entry) => entry.state === "active");
    several.classList.toggle("on", picked.length > 0);
    fill(
      several,
      picked.length > 0 && [
        el("span", {}, tn("entry.picked", picked.length)),
        active.length > 1 &&
          el(
            "button",
            { type: "button", class: "quiet", onclick: () => mergeMemories(active, changed) },
            t("do.merge"),
          ),
        staged.length > 0 &&
          el(
            "button",
            { type: "button", class: "quiet", onclick: () => settle("approve", staged) },
            t("do.approve"),
          ),
        staged.length > 0 &&
          el(
            "button",
            { type: "button", class: "quiet", onclick: () => settle("reject", staged) },
            t("do.reject"),
          ),
        el(
          "button",
          {
            type: "button",
            class: "link",
            onclick: () => {
              chosen.clear();
              show();
            },
          },
          t("do.clear"),
        ),
      ],
    );
  }

  async function settle(how, ids) {
    try {
      await settleStaged(how, ids);
      changed();
    } catch (error) {
      several.append(failure(error, null));
    }
  }

  function changed(id = "") {
    chosen.clear();
    load({ quiet: true });
    if (id) go("memories", id, filters);
    else panel.reload();
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
    key: (event) => step(table, ".row", event) || panel.key(event),
    escape: () => (open ? (close(), true) : false),
    close: () => (list.stop(), filtering.stop(), panel.stop()),
  };
}
