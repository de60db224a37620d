// Map and timeline: memories of similar meaning are close to each other. A selection on the map, in the legend or on the
// timeline also filters the list, which works without a pointer and with a screen reader.

import { isAborted, newest } from "../api.js";
import { el, fill, refill } from "../dom.js";
import { scatter } from "../draw/scatter.js";
import { timeLegend, timeline } from "../draw/timeline.js";
import { number, t, tn, translated } from "../i18n.js";
import { step } from "../keys.js";
import { failure, loading, nothing } from "../notices.js";
import { TYPES, dateField, fromDateField } from "../parts.js";
import { amend, here } from "../router.js";
import { pause } from "../steps.js";
import { COLOURINGS, painter, rampLegend } from "./map_colours.js";
import { mapLegend, mapTip, mapTools, pointLine, regionNames } from "./map_parts.js";
import { peekPanel } from "./peek.js";

const MOST_POINTS = 50_000;
const BUCKET_COUNT = 120;
const ROWS_PER_PAGE = 100;
const SLOW_MS = 1500; // the first map of many memories waits for vectors

export function mapView(main) {
  const getMap = newest();
  const getTimes = newest();
  let points = []; // most important first
  let regions = [];
  let box = null; // the selected part of the map, `[left, top, right, bottom]`, or null for all
  let range = null;
  let off = new Set();
  let colouring = "type";
  let rows = ROWS_PER_PAGE;
  let mode = "move";
  let missing = ""; // why points are missing
  let drawn = false;
  let asking = false;
  let stale = false; // something changed while the map was loading

  const times = el("div", { class: "time-place" });
  const since = el("input", { type: "date", onchange: () => select() });
  const until = el("input", { type: "date", onchange: () => select() });
  const summary = el("p", { class: "summary", role: "status", "aria-live": "polite" });
  const canvas = el("canvas", { class: "map", role: "img", "aria-label": t("map.label") });
  const layer = el("canvas", { class: "map-layer", "aria-hidden": "true" });
  const names = regionNames();
  const tip = mapTip(canvas);
  const picture = el("div", { class: "map-picture" }, canvas, names.node, layer);
  const tools = el("div", { class: "map-tools" });
  const legend = el("div", { class: "map-legend", role: "group", "aria-label": t("map.legend") });
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
      legend,
      el("div", { class: "map-place" }, picture, tip.node),
    ),
    el("section", { class: "map-list", "aria-label": t("map.list") }, summary, list),
  );
  const peek = peekPanel(main, split);
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
  const drawing = scatter(picture, {
    canvas,
    layer,
    painter: () => painter(colouring),
    onBrush: (found) => select({ box: found }),
    onPick: (point) => peek.open(point.id),
    onHover: tip.show,
    onLook: (toX, toY, box) => names.place(regions, toX, toY, box),
  });

  const kept = (point) =>
    !off.has(point.type) &&
    (!box || (point.x >= box[0] && point.x <= box[2] && point.y >= box[1] && point.y <= box[3])) &&
    (!range || (point.createdAt >= range[0] && point.createdAt < range[1]));

  // What is selected is in the address, so that a reload, a link and Back show the same.
  function select(change = {}) {
    if ("box" in change) box = change.box;
    const low = fromDateField(since.value) ?? -Infinity;
    const high = fromDateField(until.value, { end: true }) ?? Infinity;
    range = since.value || until.value ? [low, high] : null;
    rows = ROWS_PER_PAGE;
    amend("map", "", {
      peek: here().params.get("peek"),
      off: [...off].join(","),
      box: box?.map((value) => value.toFixed(3)).join(","),
      since: since.value,
      until: until.value,
      colour: colouring === "type" ? "" : colouring,
    });
    show();
  }

  function restore(params) {
    const corners = (params.get("box") ?? "").split(",").map(Number);
    box = corners.length === 4 && corners.every(Number.isFinite) ? corners : null;
    off = new Set((params.get("off") ?? "").split(",").filter((type) => TYPES.includes(type)));
    [since.value, until.value] = ["since", "until"].map((name) => params.get(name) ?? "");
    colouring = COLOURINGS.includes(params.get("colour")) ? params.get("colour") : "type";
    drawing.repaint();
    select();
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
      const answer = await getMap("map.get", { limit: MOST_POINTS }, { list: "points" });
      drawn = true;
      stale ||= Boolean(answer.degraded) && answer.points.length > points.length; // each request computes more vectors
      points = answer.points.sort((a, b) => b.importance - a.importance || b.createdAt - a.createdAt);
      regions = answer.regions ?? [];
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
      await pause();
      drawing.show(points);
      await pause();
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
            select();
          },
        }),
      );
    } catch (error) {
      if (!isAborted(error)) fill(times, failure(error, loadTimes));
    }
  }

  function show() {
    if (!drawn) return;
    const flags = new Uint8Array(points.length);
    const found = points.filter((point, index) => (flags[index] = kept(point) ? 1 : 0));
    drawing.choose(flags);
    drawTools();
    refill(legend, colouring === "type" ? mapLegend(points, off, switchType) : rampLegend(points, colouring));
    const narrowed = box || range || off.size > 0;
    refill(
      summary,
      tn("map.found", found.length),
      narrowed &&
        el("button", { type: "button", class: "link", "data-value": "clear", onclick: clear }, t("do.clear")),
    );
    const best = found.slice(0, rows);
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
  }

  const drawTools = () => refill(tools, mapTools(mode, switchMode, drawing, colouring, switchColour));

  function clear() {
    off = new Set();
    since.value = "";
    until.value = "";
    select({ box: null });
    loadTimes();
  }

  function switchColour(key) {
    colouring = key;
    drawing.repaint();
    select();
  }

  function switchMode(key) {
    mode = key;
    drawing.brushes(key === "brush");
    picture.classList.toggle("brushing", key === "brush");
    drawTools();
  }

  function switchType(type) {
    if (!off.delete(type)) off.add(type);
    select();
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
    show(route) {
      peek.show(route);
      restore(route.params);
      return drawn ? peek.mark() : Promise.all([load(), loadTimes()]); // only the panel or the selection has changed
    },
    refresh(events) {
      peek.refresh();
      if (["entries", "capture"].some((kind) => events.has(kind))) load({ quiet: true });
      if (["entries", "capture", "recall"].some((kind) => events.has(kind))) loadTimes();
    },
    actions: () => peek.actions(),
    key(event) {
      if (peek.key(event)) return true;
      if (!KEYS[event.key]) return step(list, ".row", event);
      KEYS[event.key]();
      return true;
    },
    escape: () => peek.escape() || (box || range || off.size > 0 ? (clear(), true) : false),
    close() {
      stale = false;
      getMap.stop();
      getTimes.stop();
      drawing.close();
      peek.close();
    },
  };
}
