// The empty search page: what can be searched, and what was learned last. It appears after one request. An empty memory
// shows the first three steps instead.

import { news } from "../api.js";
import { el, fill, refill } from "../dom.js";
import { t, tn, translated } from "../i18n.js";
import { loading } from "../notices.js";
import { entryLine, when } from "../parts.js";
import { address } from "../router.js";
import { firstSteps } from "./first.js";

const MAX_LATEST = 6;

/** Return a function that shows the start page in an element. `call` cancels earlier requests. */
export function greeting(call, input, search) {
  const isNew = news();

  return async function greet(place, { quiet }) {
    if (!quiet) fill(place, loading());
    const holds = await call("memory.status", {});
    if (holds.chunks > 0 && !quiet) fill(place, holdings(holds)); // show this now; the rest follows
    const latest = await call("entries.list", { limit: MAX_LATEST });
    const waiting = await call("entries.list", { limit: 1, states: ["staged"] });
    if (!isNew([holds.files, holds.chunks, holds.degraded, latest, waiting.total]) && quiet) return;
    if (holds.chunks === 0 && latest.total === 0 && waiting.total === 0)
      fill(place, firstSteps(holds.workspace, input, search));
    else
      refill(
        place,
        holdings(holds),
        waiting.total > 0 && staged(waiting.total),
        latest.entries.length > 0 && learned(latest.entries),
      );
  };
}

function staged(count) {
  return el(
    "p",
    { class: "waiting" },
    tn("search.staged", count),
    " ",
    el("a", { href: address("memories", "", { state: "staged" }) }, t("search.staged.look")),
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

function learned(entries) {
  const lines = entries.map((entry) => entryLine(entry, when(entry.createdAt)));
  return el(
    "section",
    { class: "recent" },
    el("h2", {}, t("search.recent")),
    el("div", { class: "lines" }, lines),
  );
}
