// Map and timeline: memories of similar meaning are close to each other. A selection on the map, in the legend or on the
// timeline also filters the list, which works without a pointer and with a screen reader.

import { isAborted, newest } from "../api.js";
import { el, fill, refill } from "../dom.js";
import { scatter } from "../draw/scatter.js";
import { timeLegend, timeline } from "../draw/timeline.js";
import { number, t, tn, translated } from "../i18n.js";
import { step } from "../keys.js";
import { failure, loading, nothing } from "../notices.js";
import { dateField, fromDateField } from "../parts.js";
import { go } from "../router.js";
import { mapLegend, mapTip, mapTools, pointLine } from "./map_parts.js";

const MOST_POINTS = 10_000;
const BUCKET_COUNT = 120;
const ROWS_PER_PAGE = 100;
const SLOW_MS = 1500; // the first map of many memories waits for vectors

export function mapView(main) {
  const getMap = newest();
  const getTimes = newest();
  let points = [];
  let brushed = null; // selected ids, or null for all
  let range = null;
  let off = new Set();
  let rows = ROWS_PER_PAGE;
  let mode = "move";
  let missing = ""; // why points are missing
  let drawn = false;
  let asking = false;
  let stale = false; // something changed while the map was loading

  const times = el("div", { class: "time-place" });
  const since = el("input", { type: "date", onchange: () => dated() });
  const until = el("input", { type: "date", onchange: () => dated() });
  const summary = el("p", { class: "summary", role: "status", "aria-live": "polite" });
  const canvas = el("canvas", { class: "map", role: "img", "aria-label": t("map.label") });
  const tip = mapTip(canvas);
  const tools = el("div", { class: "map-tools" });
  const legend = el("div", { class: "map-legend", role: "group", "aria-label": t("entry.type") });
  const list = el("div", { class: "lines" });
  const problem = el("div");
  const split = el(
    "div",
    { class: "map-split" },
    el(
      "section",
      { class: "card map-card" },
      el("h2", { class: "hidden" }, t("map.title")),
      tools,
      el("div", { class: "map-place" }, canvas, tip.node),
      legend,
    ),
    el("section", { class: "map-list", "aria-label": t("map.list") }, summary, list),
  );
  fill(
    main,
    el("header", { class: "view-head" }, el("h1", {}, t("view.map"))),
    el(
      "section",
      { class: "card" },
      el("h2", { class: "hidden" }, t("time.title")),
      times,
      el(
        "div",
        { class: "time-foot" },
        timeLegend(),
        el(
          "div",
          { class: "filters" },
          el("label", { class: "inline" }, t("filter.since"), since),
          el("label", { class: "inline" }, t("filter.until"), until),
        ),
      ),
    ),
    problem,
    split,
  );
  const drawing = scatter(canvas, {
    onBrush: (found) => {
      brushed = found.length ? new Set(found.map((point) => point.id)) : null;
      rows = ROWS_PER_PAGE;
      show();
    },
    onPick: (point) => go("memories", point.id),
    onHover: tip.show,
  });

  const kept = (point) =>
    !off.has(point.type) &&
    (!brushed || brushed.has(point.id)) &&
    (!range || (point.createdAt >= range[0] && point.createdAt < range[1]));

  function dated() {
    const low = fromDateField(since.value) ?? -Infinity;
    const high = fromDateField(until.value, { end: true }) ?? Infinity;
    range = since.value || until.value ? [low, high] : null;
    rows = ROWS_PER_PAGE;
    show();
  }

  async function load({ quiet = false } = {}) {
    if (asking) {
      stale = true;
      return;
    }
    asking = true;
    if (!quiet) fill(list, loading());
    fill(problem);
    const slow = setTimeout(() => drawn || fill(summary, t("map.making")), SLOW_MS);
    try {
      const answer = await getMap("map.get", { limit: MOST_POINTS });
      drawn = true;
      stale ||= Boolean(answer.degraded) && answer.points.length > points.length; // each request computes more vectors
      points = answer.points;
      missing = translated(answer.degraded ?? "");
      split.classList.remove("empty");
      if (missing && points.length) fill(problem, el("p", { class: "degraded" }, missing));
      if (points.length === 0) {
        empty();
        fill(
          problem,
          nothing(missing || t("entry.none"), el("p", { class: "faint" }, t("map.none.how"))),
        );
        return;
      }
      drawing.show(points);
      show();
    } catch (error) {
      if (isAborted(error)) return;
      empty();
      fill(
        problem,
        failure(error, () => load()),
      );
    } finally {
      clearTimeout(slow);
      asking = false;
      if (stale) ((stale = false), load({ quiet: true }));
    }
  }

  function empty() {
    split.classList.add("empty");
    fill(summary);
    fill(list);
  }

  async function loadTimes() {
    try {
      const answer = await getTimes("timeline.get", { buckets: BUCKET_COUNT });
      fill(
        times,
        timeline(answer.buckets, {
          onRange: (low, high) => {
            since.value = dateField(low);
            until.value = dateField(high - 1);
            range = [low, high];
            rows = ROWS_PER_PAGE;
            show();
          },
        }),
      );
    } catch (error) {
      if (!isAborted(error)) fill(times, failure(error, loadTimes));
    }
  }

  function show() {
    if (!drawn) return;
    drawing.choose(kept);
    const found = points.filter(kept);
    const narrowed = brushed || range || off.size > 0;
    refill(
      summary,
      tn("map.found", found.length),
      narrowed &&
        el("button", { type: "button", class: "link", "data-value": "clear", onclick: clear }, t("do.clear")),
    );
    const best = [...found]
      .sort((a, b) => b.importance - a.importance || b.createdAt - a.createdAt)
      .slice(0, rows);
    refill(
      list,
      best.length
        ? best.map(pointLine)
        : nothing(t("map.none.chosen")),
      found.length > rows &&
        el(
          "button",
          {
            type: "button",
            class: "quiet more",
            "data-value": "more",
            onclick: () => {
              rows += ROWS_PER_PAGE;
              show();
            },
          },
          t("do.more"),
          el("span", { class: "faint" }, ` ${number(rows)} / ${number(found.length)}`),
        ),
    );
    refill(tools, mapTools(mode, switchMode, drawing));
    refill(legend, mapLegend(points, off, switchType));
  }

  function clear() {
    brushed = null;
    range = null;
    off = new Set();
    since.value = "";
    until.value = "";
    show();
    loadTimes();
  }

  function switchMode(key) {
    mode = key;
    drawing.brushes(key === "brush");
    canvas.classList.toggle("brushing", key === "brush");
    refill(tools, mapTools(mode, switchMode, drawing));
  }

  function switchType(type) {
    if (!off.delete(type)) off.add(type);
    rows = ROWS_PER_PAGE;
    show();
  }

  const KEYS = {
    "+": () => drawing.zoom(1.4),
    "=": () => drawing.zoom(1.4),
    "-": () => drawing.zoom(1 / 1.4),
    0: () => drawing.reset(),
    ArrowLeft: () => drawing.pan(40, 0),
    ArrowRight: () => drawing.pan(-40, 0),
  };

  return {
    show: () => Promise.all([load(), loadTimes()]),
    refresh(events) {
      if (["entries", "capture"].some((kind) => events.has(kind))) load({ quiet: true });
      if (["entries", "capture", "recall"].some((kind) => events.has(kind))) loadTimes();
    },
    key(event) {
      if (!KEYS[event.key]) return step(list, ".row", event);
      KEYS[event.key]();
      return true;
    },
    escape: () => (brushed || range || off.size > 0 ? (clear(), true) : false),
    close() {
      stale = false;
      getMap.stop();
      getTimes.stop();
      drawing.close();
    },
  };
}
