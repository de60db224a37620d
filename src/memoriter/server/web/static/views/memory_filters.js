// The filters of the table: in the address, and as arguments for the gateway.

import { ask } from "../api.js";
import { el, refill, typed } from "../dom.js";
import { number, t } from "../i18n.js";
import { TRUST_LEVELS, STATES, TYPES, choice, field, fromDateField } from "../parts.js";

const FILTER_NAMES = ["q", "type", "state", "trust", "stars", "tag", "since", "until", "session", "sort"];
const SORTS = ["updated", "importance"];
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
    sort: filters.sort,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value || value === 0));
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
  const quick = el("div", { class: "filters" });
  const further = el("div", { class: "filters" });
  const more = el("details", { class: "more-filters" }, el("summary", {}, t("filter.more")), further);
  const node = el("div", { class: "filter-bar" }, el("div", { class: "filters" }, query, quick), more);

  function put(name, value) {
    filters = { ...filters, [name]: value };
    if (!value) delete filters[name];
    draw();
    changed(filters);
  }

  const counted = (group, name) => (counts[group]?.[name] ? ` (${number(counts[group][name])})` : "");
  const pick = (name, text, group, all, names, word) => {
    const options = [["", all], ...names.map((one) => [one, `${word(one)}${counted(group, one)}`])];
    return choice(options, filters[name] ?? "", (value) => put(name, value), {
      "aria-label": text,
      "data-filter": name,
    });
  };

  function draw() {
    refill(
      quick,
      pick("type", t("entry.type"), "types", t("filter.type"), TYPES, (name) => t(`type.${name}`)),
      pick("state", t("entry.state"), "states", t("filter.state"), [...STATES, "all"], (name) =>
        t(`state.${name}`),
      ),
      pick(
        "stars",
        t("entry.importance"),
        "",
        t("filter.stars"),
        ["2", "3", "4", "5"],
        (name) => `${"★".repeat(Number(name))} ${name === "5" ? "" : t("filter.and.more")}`,
      ),
      pick("sort", t("filter.sort"), "", t(filters.q ? "sort.score" : "sort.created"), SORTS, (name) =>
        t(`sort.${name}`),
      ),
    );
    const date = (name, text) =>
      field(
        text,
        el("input", {
          type: "date",
          "data-filter": name,
          value: filters[name] ?? "",
          onchange: (event) => put(name, event.target.value),
        }),
      );
    refill(
      further,
      field(
        t("entry.trust"),
        pick("trust", t("entry.trust"), "trust", t("filter.any"), TRUST_LEVELS, (name) => t(`trust.${name}`)),
      ),
      field(
        t("entry.tag"),
        pick("tag", t("entry.tag"), "tags", t("filter.any"), tagNames(), (name) => name),
      ),
      date("since", t("filter.since")),
      date("until", t("filter.until")),
      filters.session &&
        field(
          t("entry.session"),
          el(
            "button",
            { type: "button", class: "quiet", onclick: () => put("session", "") },
            `${filters.session} ✕`,
          ),
        ),
    );
  }

  function tagNames() {
    const names = Object.keys(counts.tags ?? {}).slice(0, 200);
    return filters.tag && !names.includes(filters.tag) ? [filters.tag, ...names] : names;
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
    active: () => Object.keys(filters).some((name) => name !== "sort"),
    focus: () => (query.focus(), query.select(), true),
    read(params) {
      filters = Object.fromEntries(
        FILTER_NAMES.filter((name) => params.get(name)).map((name) => [name, params.get(name)]),
      );
      if (document.activeElement !== query) query.value = filters.q ?? "";
      if (["trust", "tag", "since", "until", "session"].some((name) => filters[name])) more.open = true;
      draw();
      if (Object.keys(counts).length === 0) facets();
      return filters;
    },
  };
}
