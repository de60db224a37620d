// The filters of the table: in the address, and as arguments for the gateway.

import { ask } from "../api.js";
import { el, fill, icon, refill, typed } from "../dom.js";
import { number, t } from "../i18n.js";
import { announce } from "../notices.js";
import { TRUST_LEVELS, STATES, TYPES, choice, fromDateField } from "../parts.js";

const FILTER_NAMES = ["q", "type", "state", "trust", "stars", "tag", "source", "workspace", "used", "since", "until", "session", "sort", "dir"];
const SORTS = ["updated", "importance", "expires", "used"];
const KNOWN = { type: TYPES, state: [...STATES, "all"], trust: TRUST_LEVELS, stars: ["1", "2", "3", "4", "5"], used: ["yes", "no"] };
const PAUSE_MS = 200;

/** The filters of the address as arguments of `entries.list`. The default is active and waiting memories. */
export function asArguments(filters) {
  const states = { "": ["active", "staged"], all: [] };
  const given = {
    query: filters.q,
    types: filters.type && [filters.type],
    states: states[filters.state ?? ""] ?? [filters.state],
    trust: filters.trust && [filters.trust],
    tags: filters.tag && [filters.tag],
    minImportance: filters.stars && Number(filters.stars),
    since: fromDateField(filters.since),
    until: fromDateField(filters.until, { end: true }),
    session: filters.session,
    source: filters.source,
    workspace: filters.workspace,
    sort: filters.sort,
    ascending: filters.dir === "asc",
  };
  const used = filters.used && { used: filters.used === "yes" };
  return { ...Object.fromEntries(Object.entries(given).filter(([, value]) => value || value === 0)), ...used };
}

/** The name of a source, such as `capture` or `import:NAME`. */
export function sourceName(source) {
  const [kind, program] = source.split(":", 2);
  return program ? `${t(`by.${kind}`)} (${program})` : t(`by.${kind}`);
}

export function filterBar(changed) {
  let filters = {};
  let counts = {};
  let timer = 0;
  const query = el("input", {
    type: "search",
    placeholder: t("filter.query"),
    "aria-label": t("filter.query"),
    autocomplete: "off",
    ...typed(() => {
      clearTimeout(timer);
      timer = setTimeout(() => put("q", query.value.trim()), PAUSE_MS);
    }),
  });
  let open = false;
  const toggle = el("button", { type: "button", class: "quiet", "aria-keyshortcuts": "f", "aria-controls": "filters", onclick: () => unfold(!open) });
  const chips = el("div", { class: "filters", id: "filters" });
  const sorting = el("div", { class: "filters" });
  const node = el("div", { class: "filter-bar filters" }, query, toggle, sorting, chips);

  /** Show all filters, or only those in use. */
  function unfold(all) {
    open = all;
    draw();
    if (open) chips.querySelector("select")?.focus();
  }

  function put(name, value) {
    filters = { ...filters, [name]: value };
    if (!value) delete filters[name];
    if (name === "sort") delete filters.dir;
    draw();
    changed(filters);
  }

  const counted = (group, name) => (counts[group]?.[name] ? ` (${number(counts[group][name])})` : "");

  /** A filter: a choice that shows its name, or its value and a button that removes it. */
  const chip = (name, text, group, names, word, all = text) => {
    const value = filters[name] ?? "";
    if (!value && !open) return null;
    const options = [["", all], ...names.map((one) => [one, `${word(one)}${counted(group, one)}`])];
    const select = choice(options, value, (chosen) => put(name, chosen), { "aria-label": text, "data-filter": name });
    const attributes = { type: "button", class: "plain", "aria-label": t("filter.remove", { name: text }), onclick: () => put(name, "") };
    return el(
      "span",
      { class: value ? "chip on" : "chip" },
      select,
      value && el("button", { ...attributes, "data-value": `remove-${name}` }, icon("close")),
    );
  };

  function draw() {
    const workspaces = known("workspaces", filters.workspace);
    toggle.setAttribute("aria-expanded", String(open));
    node.classList.toggle("unfolded", open);
    fill(toggle, t("filter.all"), el("kbd", { "aria-hidden": "true" }, "F"));
    const date = (name) => (open || filters[name]) && el("label", { class: "inline" }, t(`filter.${name}`), el("input", { type: "date", "data-filter": name, value: filters[name] ?? "", onchange: (event) => put(name, event.target.value) }));
    refill(
      chips,
      chip("type", t("entry.type"), "types", TYPES, (name) => t(`type.${name}`)),
      chip("tag", t("entry.tag"), "tags", known("tags", filters.tag), (name) => name),
      chip("source", t("entry.source"), "sources", known("sources", filters.source), sourceName),
      chip("trust", t("entry.trust"), "trust", TRUST_LEVELS, (name) => t(`trust.${name}`)),
      chip("stars", t("entry.importance"), "", ["2", "3", "4", "5"], (name) => `${"★".repeat(Number(name))} ${name === "5" ? "" : t("filter.and.more")}`),
      chip("state", t("entry.state"), "states", [...STATES, "all"], (name) => t(`state.${name}`), t("filter.state")),
      chip("used", t("filter.used"), "", ["yes", "no"], (name) => t(`used.${name}`)),
      (workspaces.length > 1 || filters.workspace) &&
        chip("workspace", t("entry.workspace"), "workspaces", workspaces, (name) => name.split("/").at(-1) || name),
      filters.session && chip("session", t("entry.session"), "", [filters.session], (name) => name),
      date("since"),
      date("until"),
    );
    refill(
      sorting,
      choice(
        [["", t(filters.q ? "sort.score" : "sort.created")], ...SORTS.map((name) => [name, t(`sort.${name}`)])],
        filters.sort ?? "",
        (value) => put("sort", value),
        { "aria-label": t("filter.sort"), "data-filter": "sort" },
      ),
    );
  }

  /** The values that occur, and the one in the address. */
  function known(group, value) {
    const names = Object.keys(counts[group] ?? {});
    return value && !names.includes(value) ? [value, ...names] : names;
  }

  async function facets() {
    try {
      counts = await ask("entries.facets");
    } catch {
      counts = {}; // filters work without counts
    }
    if (!node.contains(document.activeElement)) draw();
  }

  return {
    node,
    facets,
    stop: () => clearTimeout(timer),
    active: () => Object.keys(filters).some((name) => !["sort", "dir"].includes(name)),
    unfold: () => (unfold(!open), true),
    focus: () => (query.focus(), query.select(), true),
    read(params) {
      filters = Object.fromEntries(
        FILTER_NAMES.filter((name) => params.get(name)).map((name) => [name, params.get(name)]),
      );
      const unknown = Object.keys(KNOWN).filter((name) => filters[name] && !KNOWN[name].includes(filters[name]));
      if (unknown.length > 0) announce(t("filter.unknown", { value: unknown.map((name) => filters[name]).join(", ") }));
      for (const name of unknown) delete filters[name];
      if (document.activeElement !== query) query.value = filters.q ?? "";
      draw();
      if (Object.keys(counts).length === 0) facets();
      return filters;
    },
  };
}
