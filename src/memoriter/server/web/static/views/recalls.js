// Recalls: a list with filters of every time memories were added to a prompt. The details are in recall_detail.js.

import { isAborted, news, newest } from "../api.js";
import { el, enter, fill, icon, refill } from "../dom.js";
import { number, t, tn } from "../i18n.js";
import { step, stepOpen } from "../keys.js";
import { failure, loading, nothing } from "../notices.js";
import { fromDateField, when } from "../parts.js";
import { address, amend, go } from "../router.js";
import { peekPanel } from "./peek.js";
import { recallDetail } from "./recall_detail.js";

const PAGE_SIZE = 50;
const INSTALL_COMMAND = "memoriter install";

export function recallsView(main) {
  const list = newest();
  const isNew = news();
  const get = newest();
  let recalls = [];
  let total = 0;
  let cursor = null;
  let open = "";
  let docked = ""; // what a wide screen shows beside the list until the reader opens one: the newest when it was loaded
  let drawn = null; // the recall in the panel
  let opening = false; // until the list is drawn; a live event may repeat the request
  let filters = {};

  const input = (name, attributes) =>
    el("input", {
      ...attributes,
      "data-filter": name,
      onchange: (event) => {
        filters = { ...filters, [name]: event.target.value.trim() };
        amend("recalls", open, filters);
        load();
      },
    });
  const words = input("q", {
    type: "search",
    placeholder: t("recall.filter.words"),
    "aria-label": t("recall.filter.words"),
    autocomplete: "off",
    dir: "auto",
  });
  const since = input("since", { type: "date" });
  const until = input("until", { type: "date" });
  const bar = el(
    "div",
    { class: "filters" },
    words,
    el("label", { class: "inline" }, t("filter.since"), since),
    el("label", { class: "inline" }, t("filter.until"), until),
  );
  const summary = el("p", { class: "summary", role: "status", "aria-live": "polite" });
  const rows = el("div", { class: "lines" });
  const aside = el("aside", { class: "panel", "aria-label": t("recall.detail"), tabindex: "-1" });
  const split = el("div", { class: "split" }, el("div", { class: "split-list" }, bar, summary, rows), aside);
  const peek = peekPanel(main, split);
  fill(
    main,
    el(
      "header",
      { class: "view-head" },
      el("h1", {}, t("view.recalls")),
      el("p", { class: "faint" }, t("recall.lead")),
      el("button", { type: "button", class: "quiet", "data-do": "why", onclick: why }, t("why.title")),
    ),
    split,
  );

  async function why() {
    (await import("./why.js")).whyDialog();
  }

  async function load({ quiet = false, more = false } = {}) {
    opening ||= !quiet && !more;
    if (!quiet && !more) fill(rows, loading());
    try {
      const given = {
        words: filters.q,
        session: filters.session,
        since: fromDateField(filters.since),
        until: fromDateField(filters.until, { end: true }),
      };
      const wanted = Object.fromEntries(Object.entries(given).filter(([, value]) => value));
      const limit = quiet ? Math.min(500, Math.max(PAGE_SIZE, recalls.length)) : PAGE_SIZE;
      const answer = await list("recalls.list", { ...wanted, limit, ...(more && { cursor }) });
      if (!isNew([answer, more]) && quiet && !opening) return;
      recalls = more ? [...recalls, ...answer.recalls] : answer.recalls;
      total = answer.total;
      cursor = answer.cursor ?? null;
      if (opening) docked = recalls[0]?.id ?? "";
      opening = false;
      show();
      detail();
    } catch (error) {
      if (isAborted(error)) return;
      opening = false;
      isNew.forget();
      fill(
        rows,
        failure(error, () => load()),
      );
    }
  }

  function show() {
    const narrowed = Object.values(filters).some(Boolean);
    fill(
      summary,
      tn("recall.found", total),
      filters.session && el("span", {}, `${t("entry.session")}: ${filters.session}`),
      narrowed && el("a", { href: address("recalls") }, t("do.clear.filters")),
    );
    refill(
      rows,
      recalls.length
        ? recalls.map(line)
        : narrowed
          ? nothing(t("recall.none.filtered"))
          : nothing(t("recall.none"), el("p", { class: "faint" }, t("recall.none.how")), el("pre", {}, INSTALL_COMMAND)),
      cursor &&
        el(
          "button",
          { type: "button", class: "quiet more", "data-value": "more", onclick: () => load({ more: true }) },
          t("do.more"),
        ),
    );
    mark();
  }

  function line(recall) {
    return el(
      "a",
      { class: "recall-line row", href: address("recalls", recall.id, filters), "data-id": recall.id },
      el("span", { class: "entry-text" }, recall.query || t("recall.noQuery")),
      el(
        "span",
        { class: "entry-facts" },
        el(
          "span",
          {},
          t("recall.counts", { entered: number(count(recall.entered)), left: number(count(recall.leftOut)) }),
        ),
        el("span", {}, tn("count.tokens", recall.tokens)),
        el("span", { class: "faint" }, t(`interface.${recall.interface}`)),
        when(recall.at),
      ),
    );
  }

  const wide = matchMedia("(width >= 1600px)");
  const beside = () => open || (wide.matches ? docked : "");
  const resized = () => (mark(), detail());
  wide.addEventListener("change", resized);

  async function detail() {
    const id = beside();
    if (id === drawn) return;
    drawn = id;
    if (!id) return fill(aside);
    fill(aside, loading());
    try {
      const answer = await get("recalls.get", { id });
      if (id !== drawn) return; // closed in the meantime
      fill(aside, open && closing(), recallDetail(answer.recall ?? answer));
      peek.mark();
      if (open) enter(aside);
      if (open) rows.querySelector(`[data-id="${CSS.escape(open)}"]`)?.scrollIntoView({ block: "nearest" }); // rows grow
    } catch (error) {
      if (isAborted(error)) return;
      fill(aside, open && closing(), failure(error, () => ((drawn = null), detail())));
    }
  }

  const close = () => {
    const last = open;
    go("recalls", "", filters);
    requestAnimationFrame(() => rows.querySelector(`[data-id="${CSS.escape(last)}"]`)?.focus());
  };
  const closing = () =>
    el(
      "div",
      { class: "panel-bar bare" },
      el(
        "button",
        { type: "button", class: "plain", "aria-label": t("do.close"), onclick: close },
        icon("close"),
      ),
    );

  function mark() {
    split.classList.toggle("with-panel", Boolean(beside()));
    for (const row of rows.querySelectorAll("[data-id]"))
      row.classList.toggle("open", row.dataset.id === beside());
  }

  return {
    async show(route) {
      if (route.id !== open) drawn = null; // also to add or remove the button that closes it
      open = route.id;
      peek.show(route);
      mark();
      const named = ["q", "since", "until", "session"].map((name) => [name, route.params.get(name) ?? ""]);
      const wanted = Object.fromEntries(named);
      const same = named.every(([name, value]) => (filters[name] ?? "") === value);
      filters = wanted;
      [words.value, since.value, until.value] = named.map(([, value]) => value);
      await Promise.all([recalls.length && same ? null : load(), detail()]);
    },
    refresh(events) {
      if (events.has("recall")) load({ quiet: true });
      peek.refresh();
    },
    actions: () => peek.actions(),
    focusSearch: () => (words.focus(), words.select(), true),
    key: (event) =>
      peek.key(event) || stepOpen(recalls, beside(), event, (id) => go("recalls", id, filters)) || step(rows, ".row", event),
    escape: () => peek.escape() || (open ? (close(), true) : false),
    close: () => (list.stop(), get.stop(), wide.removeEventListener("change", resized), peek.close()),
  };
}

const count = (value) => (Array.isArray(value) ? value.length : (value ?? 0));
