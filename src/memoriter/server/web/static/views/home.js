// The home view, below an empty search: what happened today, how the memory grows and is used, and which memories are used
// most and never. It appears after one request. An empty memory shows the first three steps instead.

import { news } from "../api.js";
import { el, fill, refill } from "../dom.js";
import { chart } from "../draw/chart.js";
import { number, t, tn, translated } from "../i18n.js";
import { loading } from "../notices.js";
import { dateField, entryLine, when } from "../parts.js";
import { address } from "../router.js";
import { firstSteps } from "./first.js";

const DAYS = 30;

/** Return a function that shows the home view in an element. `call` cancels earlier requests. */
export function home(call, input, search) {
  const isNew = news();

  return async function show(place, { quiet }) {
    if (!quiet) fill(place, loading());
    const holds = await call("memory.status", {});
    if (holds.chunks > 0 && !quiet) fill(place, holdings(holds)); // show this now; the rest follows
    const answer = await call("overview.get", { until: tomorrow(), days: DAYS });
    if (!isNew([holds.files, holds.chunks, holds.degraded, answer]) && quiet) return;
    if (holds.chunks === 0 && answer.latest.length === 0 && answer.staged === 0)
      fill(place, firstSteps(holds.workspace, input, search));
    else refill(place, holdings(holds), answer.staged > 0 && staged(answer.staged), today(answer), lists(answer), charts(answer));
  };
}

/** The end of today, in seconds. */
function tomorrow() {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1).getTime() / 1000;
}

function staged(count) {
  return el(
    "p",
    { class: "waiting" },
    tn("search.staged", count),
    " ",
    el("a", { href: address("inbox") }, t("search.staged.look")),
  );
}

function holdings(status) {
  const counts = { files: tn("count.files", status.files), chunks: tn("count.chunks", status.chunks) };
  return el(
    "section",
    { class: "welcome holdings" },
    el("p", { class: "lead" }, t("search.holds", counts)),
    el("p", { class: "faint" }, t("search.hint")),
    status.degraded && el("p", { class: "degraded" }, translated(status.degraded)),
  );
}

/** The numbers of today. Each links to what it counts. */
function today(answer) {
  const day = answer.days.at(-1);
  const since = dateField(day.start);
  const tiles = [
    ["learned", day.captured, address("memories", "", { since })],
    ["recalled", day.recalls, address("recalls", "", { since })],
    ["superseded", day.superseded, address("memories", "", { state: "superseded", sort: "updated" })],
    ["waiting", answer.staged, address("inbox")],
    ["errors", answer.errors, address("health")],
  ];
  return el(
    "section",
    { class: "today" },
    el(
      "header",
      { class: "view-head" },
      el("h2", {}, t("home.today")),
      el("a", { href: address("changes", "", { since }) }, t("view.changes")),
      el("a", { href: address("changes", "letter") }, t("changes.letter")),
    ),
    el(
      "ul",
      { class: "tiles" },
      tiles.map(([name, count, href]) =>
        el(
          "li",
          {},
          el(
            "a",
            { class: "tile", href, "data-name": name, "data-none": count === 0 },
            el("b", {}, number(count)),
            el("span", {}, t(`home.${name}`)),
          ),
        ),
      ),
    ),
  );
}

function lists(answer) {
  const used = (entry) => el("span", { class: "uses" }, tn("count.times", entry.accessCount));
  const created = (entry) => when(entry.createdAt);
  return el(
    "div",
    { class: "home-lists" },
    list("search.recent", answer.latest, created, address("memories")),
    list("home.most.used", answer.mostUsed, used, address("memories", "", { sort: "used" })),
    list("home.never.used", answer.neverUsed, created, address("memories", "", { used: "no" }), answer.neverUsedTotal),
  );
}

function list(title, entries, fact, href, total = 0) {
  return (
    entries.length > 0 &&
    el(
      "section",
      { class: "recent" },
      el("h2", {}, t(title), total > entries.length && el("span", { class: "faint" }, ` ${number(total)}`)),
      el(
        "div",
        { class: "lines" },
        entries.map((entry) => entryLine(entry, fact(entry))),
      ),
      el("a", { class: "all", href }, t("home.all")),
    )
  );
}

/** Growth, recalls and tokens of the last days. */
function charts({ days, active }) {
  const sum = (of) => days.reduce((all, day) => all + of(day), 0);
  const added = { hits: tn("count.hits", sum((day) => day.hits)), n: tn("recall.found", sum((day) => day.recalls)) };
  return el(
    "section",
    { class: "home-charts" },
    el("h2", {}, t("home.days", { n: DAYS })),
    el(
      "div",
      { class: "charts" },
      chart({
        title: t("home.growth"),
        now: number(active),
        days,
        series: { name: "entries", of: (day) => day.entries },
        cut: false,
      }),
      chart({
        title: t("home.added"),
        now: t("home.recalls.now", added),
        days,
        series: { name: "hits", of: (day) => day.hits },
        beside: [{ name: "recalls", of: (day) => day.recalls }],
      }),
      chart({
        title: t("home.tokens"),
        now: number(sum((day) => day.tokens)),
        days,
        series: { name: "tokens", of: (day) => day.tokens },
      }),
    ),
  );
}
