// Memories: a table with filters, and a panel for one memory. The table is a window onto all of them (rows.js). The panel
// is in memory.js, the actions are in memory_actions.js.

import { ask, isAborted, newest } from "../api.js";
import { el, fill } from "../dom.js";
import { number, t, tn } from "../i18n.js";
import { step } from "../keys.js";
import { announce, failure, loading, nothing, sentence } from "../notices.js";
import { label, stars, when } from "../parts.js";
import { address, amend, go } from "../router.js";
import { PAGE_SIZE, rowWindow } from "../rows.js";
import { acceptFiles, download, importFiles } from "./exchange.js";
import { forgetBy } from "./forgetting.js";
import { picking } from "./memories_picked.js";
import { memoryPanel } from "./memory.js";
import { addMemory } from "./memory_actions.js";
import { asArguments, filterBar } from "./memory_filters.js";

const COLUMNS = ["pick", "text", "type", "importance", "trust", "created", "expires"];
const SORTABLE = { importance: "desc", created: "desc", expires: "asc" }; // column → its first direction

export function memoriesView(main) {
  const newList = newest();
  let filters = {};
  let open = "";
  let list = null; // the rows; null while there are none
  let start = null; // the anchor of the list that is being loaded
  let shown = null; // the newest answer

  const filtering = filterBar((changed) => {
    filters = changed;
    amend("memories", open, filters);
    picked.clear();
    load();
  });
  const summary = el("p", { class: "summary", role: "status", "aria-live": "polite" });
  const onPaper = el("p", { class: "on-paper" });
  const table = el("div", { class: "table-place" });
  const picked = picking(changed, forgotten, {
    draw: () => list?.redraw(),
    all: async () => (await ask("entries.list", { ...asArguments(filters), limit: 500 })).entries,
  });
  const aside = el("aside", { class: "panel", "aria-label": t("entry.detail"), tabindex: "-1" });
  const panel = memoryPanel(aside, { close, changed, forgotten });
  const split = el(
    "div",
    { class: "split" },
    el("div", { class: "split-list" }, filtering.node, summary, onPaper, picked.node, table),
    aside,
  );
  fill(
    main,
    el(
      "header",
      { class: "view-head" },
      el("h1", {}, t("view.memories")),
      el("button", { type: "button", class: "quiet", onclick: () => importFiles([], () => changed("")) }, t("import.open")),
      el("button", { type: "button", class: "quiet", onclick: () => download(asArguments(filters)) }, t("export.open")),
      el(
        "button",
        { type: "button", class: "quiet", onclick: () => forgetBy({ session: filters.session }, forgotten) },
        t("forget.open"),
      ),
      el("button", { type: "button", class: "primary", onclick: () => addMemory(changed) }, t("entry.add")),
    ),
    split,
  );
  const refuseFiles = acceptFiles(split, () => changed(""));

  async function request({ offset, around }, call = ask) {
    const answer = await call("entries.list", {
      ...asArguments(filters),
      limit: PAGE_SIZE,
      offset,
      ...(around && { around }),
    });
    return { items: answer.entries, offset: answer.offset ?? offset, total: answer.total };
  }

  /** Load the list from the start, or at the anchor of an earlier visit. */
  async function load(anchor = null) {
    start = anchor;
    forgetList();
    fill(table, loading());
    try {
      const from = anchor ? { offset: Math.max(0, anchor.index - PAGE_SIZE / 2), around: anchor.id } : { offset: 0 };
      const answer = await request(from, newList);
      start = null;
      show(answer, (rows) => rows.start(answer, anchor));
    } catch (error) {
      failed(error);
    }
  }

  // A change elsewhere: the rows that the reader looks at stay where they are. Only a reader who is at the top and does
  // nothing sees new rows move in.
  async function renew() {
    if (!list) return load(start);
    const anchor = list.anchor();
    const reads = Boolean(open) || picked.any() || table.contains(document.activeElement) || table.getBoundingClientRect().top < 0;
    try {
      const around = reads && anchor ? { around: anchor.id } : {};
      const answer = await request({ offset: Math.max(0, (anchor?.index ?? 0) - PAGE_SIZE / 2), ...around }, newList);
      const now = list?.anchor(); // the reader may have moved on during the request
      show(answer, (rows) => picked.renew(answer.items, rows.renew(answer, reads ? [now, anchor].filter(Boolean) : [])));
    } catch (error) {
      failed(error);
    }
    return null;
  }

  function failed(error) {
    if (isAborted(error)) return;
    if (list && error.status !== 401) return announce(sentence(error));
    forgetList();
    fill(
      table,
      failure(error, () => load()),
    );
  }

  function forgetList() {
    list?.close();
    list = null;
  }

  function show(answer, put) {
    shown = answer;
    fill(summary, tn("entry.found", answer.total), filtering.active() && clearing());
    if (answer.total === 0) {
      forgetList();
      picked.clear();
      fill(table, noMemories(filtering.active(), () => addMemory(changed)));
      return;
    }
    if (!list) build();
    table.querySelector("table").setAttribute("aria-rowcount", String(answer.total + 1));
    put(list);
  }

  function build() {
    const body = el("tbody", {});
    const head = COLUMNS.map((name) =>
      el(
        "th",
        { scope: "col", class: `col-${name}`, "aria-sort": direction(name) },
        name === "pick" ? picked.box() : heading(name),
      ),
    );
    fill(table, el("table", { class: "entries" }, el("thead", {}, el("tr", {}, head)), body));
    list = rowWindow(body, { request, draw: row, key: signature, drawn: markOpen, failed, printing });
  }

  const printing = ({ from, to, total }) =>
    fill(onPaper, to - from + 1 < total && t("print.rows", { from: number(from), to: number(to), total: number(total) }));

  function row(entry) {
    const only = (name, value, text, looks) =>
      el("a", { ...looks, tabindex: "-1", title: t("filter.only"), href: address("memories", open, { ...filters, [name]: value }) }, text);
    const onlyLabel = (kind, name) =>
      only(kind, name, t(`${kind}.${name}`), { class: "only label", "data-kind": kind, "data-name": name });
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
          (entry.tags ?? []).map((tag) => only("tag", tag, tag, { class: "only tag" })),
        ),
      ),
      el(
        "td",
        { class: "col-type" },
        onlyLabel("type", entry.type),
        entry.state !== "active" && label("state", entry.state),
      ),
      el("td", { class: "col-importance" }, stars(entry.importance)),
      el("td", { class: "col-trust" }, onlyLabel("trust", entry.trust)),
      el("td", { class: "col-created" }, when(entry.createdAt)),
      el(
        "td",
        { class: "col-expires" },
        entry.expiresAt ? when(entry.expiresAt) : el("span", { class: "faint" }, t("entry.never")),
      ),
    );
  }

  const sorted = () => filters.sort || (filters.q ? "score" : "created");

  function direction(name) {
    if (!(name in SORTABLE) || sorted() !== name) return null;
    return filters.dir === "asc" ? "ascending" : "descending";
  }

  // A click sorts by the column; another one turns the direction.
  function heading(name) {
    if (!(name in SORTABLE)) return t(`entry.${name}`);
    const now = direction(name);
    const next = now ? (now === "ascending" ? "desc" : "asc") : SORTABLE[name];
    const sort = name === "created" && !filters.q ? "" : name;
    const attributes = { type: "button", class: "plain sort", "data-value": `sort-${name}` };
    return el(
      "button",
      { ...attributes, onclick: () => go("memories", open, { ...filters, sort, dir: next === "asc" ? "asc" : "" }) },
      t(`entry.${name}`),
      el("span", { "aria-hidden": "true" }, { ascending: " ↑", descending: " ↓" }[now] ?? ""),
    );
  }

  /** Open the memory `by` rows from the open one. Returns whether there is an open one. */
  function stepOpen(by) {
    if (!open || !list) return false;
    const rows = list;
    const next = async () => {
      const at = rows.indexOf(open) < 0 ? await rows.reach(open) : rows.indexOf(open);
      if (at < 0 || at + by < 0 || at + by >= rows.total()) return;
      await rows.reach(at + by);
      const entry = rows.at(at + by);
      if (entry && rows === list) go("memories", entry.id, filters);
    };
    next().catch(failed);
    return true;
  }

  function key(event) {
    const by = { j: 1, k: -1 }[event.key];
    if (by && stepOpen(by)) return true;
    if (event.key === "f") return filtering.unfold();
    if (event.key === "x") {
      const focused = document.activeElement?.closest("tr[data-id]") ?? table.querySelector("tr.open");
      focused?.querySelector("input")?.click();
      return Boolean(focused);
    }
    return step(split.firstChild, ".row", event) || panel.key(event);
  }

  const clearing = () =>
    el("button", { type: "button", class: "link", onclick: () => go("memories") }, t("do.clear.filters"));

  // After a change, `id` is the memory to show; null if it no longer exists. Resolves when the list shows the change.
  function changed(id = open) {
    picked.clear();
    const renewed = renew();
    if (id === null) close();
    else if (id && id !== open) go("memories", id, filters);
    else panel.reload();
    return renewed;
  }

  function forgotten(ids) {
    picked.clear();
    renew();
    if (ids.includes(open)) close();
  }

  function markOpen() {
    for (const one of table.querySelectorAll("tr[data-id]"))
      one.classList.toggle("open", one.dataset.id === open);
  }

  function close() {
    const last = open;
    go("memories", "", filters);
    requestAnimationFrame(() => table.querySelector(`[data-id="${CSS.escape(last)}"] .row`)?.focus());
  }

  return {
    async show(route) {
      const wanted = filtering.read(route.params);
      const same = shown && JSON.stringify(wanted) === JSON.stringify(filters);
      const first = shown === null;
      filters = wanted;
      open = route.id;
      markOpen();
      split.classList.toggle("with-panel", Boolean(open));
      panel.show(open);
      if (!same) await load(first ? history.state?.anchor : null);
    },
    refresh(events) {
      if (!["entries", "capture", "sync", "recall"].some((kind) => events.has(kind))) return;
      if (["entries", "capture"].some((kind) => events.has(kind))) (renew(), filtering.facets());
      panel.refresh();
    },
    focusSearch: () => filtering.focus(),
    actions: () => [{ text: t("export.open"), run: () => download(asArguments(filters)) }, ...panel.actions()],
    key,
    escape: () => (open ? (close(), true) : false),
    close: () => (newList.stop(), filtering.stop(), panel.stop(), refuseFiles(), forgetList()),
  };
}

/** Everything that a row shows, and the version that its actions are for. */
const signature = ({ id, seq, text, type, importance, state, trust, createdAt, expiresAt, tags }) =>
  JSON.stringify([id, seq, text, type, importance, state, trust, createdAt, expiresAt, tags]);

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
