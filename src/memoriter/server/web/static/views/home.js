// The home view, below an empty search: the owner's day, with what changed since yesterday and notes that can be restored;
// which memories are used most and never; how the memory grows. An empty memory shows the first three steps instead.

import { ask, news } from "../api.js";
import { el, fill, refill, withCode } from "../dom.js";
import { chart } from "../draw/chart.js";
import { number, sentences, t, tn, today as dayAndDate, translated } from "../i18n.js";
import { announce, loading, sentence } from "../notices.js";
import { dateField, entryLine, when } from "../parts.js";
import { address } from "../router.js";
import { firstSteps } from "./first.js";

const DAYS = 30;
const DAY_S = 86_400;
const MAX_CHANGES = 8;
const MAX_DELETED = 3;

/** Return a function that shows the home view in an element. `call` cancels earlier requests. */
export function home(call, input, search) {
  const isNew = news();

  return async function show(place, { quiet }) {
    if (!quiet) fill(place, loading());
    const holds = await call("memory.status", {});
    if (holds.chunks > 0 && !quiet) fill(place, dayHead(), holdings(holds)); // show this now; the rest follows
    const answer = await call("overview.get", { until: tomorrow(), days: DAYS });
    const changes = await call("changes.list", { since: tomorrow() - 2 * DAY_S, limit: MAX_CHANGES });
    if (!isNew([holds.files, holds.chunks, holds.degraded, answer, changes]) && quiet) return;
    if (holds.chunks === 0 && answer.latest.length === 0 && answer.staged === 0)
      fill(place, firstSteps(holds.workspace, input, search));
    else refill(place, today(answer), lists(answer, changes, () => show(place, { quiet: true }).catch(() => {})), charts(answer), holdings(holds));
  };
}

/** The end of today, in seconds. */
function tomorrow() {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1).getTime() / 1000;
}

function holdings(status) {
  const counts = { files: tn("count.files", status.files), chunks: tn("count.chunks", status.chunks) };
  return el(
    "section",
    { class: "holdings" },
    status.degraded && el("p", { class: "degraded" }, withCode(translated(status.degraded))),
    el("p", { class: "faint" }, sentences(t("search.holds", counts), t("search.hint"))),
  );
}

const dayHead = (...more) => el("header", { class: "view-head welcome" }, el("h2", { class: "lead" }, dayAndDate()), more);

/** The numbers of today. Each links to what it counts. */
function today(answer) {
  const day = answer.days.at(-1);
  const since = dateField(day.start);
  const tiles = [
    ["waiting", answer.staged, address("inbox")],
    ["learned", day.captured, address("memories", "", { since })],
    ["superseded", day.superseded, address("memories", "", { state: "superseded", sort: "updated" })],
    ["recalled", day.recalls, address("recalls", "", { since })],
    ["errors", answer.errors, address("health")],
  ];
  return el(
    "section",
    { class: "today" },
    dayHead(
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

/** What changed since yesterday, and the notes that were deleted in the last days. */
function happened({ changes, deleted }, again) {
  if (changes.length + deleted.length === 0) return null;
  const line = ({ at, events: [event, ...others] }) =>
    el(
      "a",
      { class: "entry-line row", href: address("memories", event.entryId) },
      el("span", { class: "entry-text" }, event.after ?? event.before),
      el("span", { class: "entry-facts" }, el("b", {}, t(`event.${event.kind}`)), t("entry.by", { who: t(`who.${event.by}`) }), others.length > 0 && `+${number(others.length)}`, when(at)),
    );
  return el(
    "section",
    { class: "recent" },
    el("h2", {}, t("home.happened")),
    el("div", { class: "lines" }, deleted.slice(0, MAX_DELETED).map((note) => deletedNote(note, again)), changes.map(line)),
    el("a", { class: "all", href: address("changes") }, t("home.all")),
  );
}

/** A deleted note or session with a button that restores it. */
export function deletedNote({ id, path, at }, done) {
  const restore = async () => {
    try {
      await ask("notes.restore", { id });
      announce(t("notes.restored"), "", null, { href: address("notes", path), text: path });
    } catch (error) {
      announce(sentence(error));
    }
    done();
  };
  return el(
    "div",
    { class: "entry-line", "data-id": id },
    el("span", { class: "entry-text" }, path),
    el(
      "span",
      { class: "entry-facts" },
      el("b", {}, t(path.endsWith(".jsonl") ? "home.session.deleted" : "home.note.deleted")),
      el("button", { type: "button", class: "link", "data-do": "restore", onclick: restore }, t("do.restore")),
      when(at),
    ),
  );
}

function lists(answer, changes, again) {
  const used = (entry) => el("span", { class: "uses" }, tn("count.times", entry.accessCount));
  const created = (entry) => when(entry.createdAt);
  const told = new Set(changes.changes.flatMap(({ events }) => events.map(({ entryId }) => entryId)));
  return el(
    "div",
    { class: "home-lists" },
    happened(changes, again),
    list("search.recent", answer.latest.filter(({ id }) => !told.has(id)), created, address("memories")),
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
