// Captures and recalls over time as bars: captures above the line, recalls below it.

import { el, svg } from "../dom.js";
import { day, moment, number, t } from "../i18n.js";
import { topOf } from "./scale.js";

const WIDTH = 1000;
const HEIGHT_ABOVE = 84; // pixels above the line
const HEIGHT_BELOW = 44;
const SHORT_SPAN_S = 3 * 86_400; // shorter spans show hours
const KINDS = ["captured", "superseded", "forgotten"];

/** Draw the timeline. `onRange(since, until)` is called when the reader selects a range. */
export function timeline(buckets, { onRange }) {
  if (!buckets.some((bucket) => [...KINDS, "recalls"].some((kind) => bucket[kind] > 0)))
    return el("p", { class: "faint" }, t("time.none"));
  const most = topOf(buckets.map((bucket) => changesIn(bucket)));
  const mostAsked = topOf(buckets.map((bucket) => bucket.recalls ?? 0));
  const step = WIDTH / Math.max(1, buckets.length);
  const bars = buckets.map((bucket, index) =>
    bar(bucket, index * step, Math.max(1, step - Math.min(2, step / 4)), most, mostAsked),
  );
  const brush = svg("rect", { class: "time-brush", x: 0, y: 0, width: 0, height: HEIGHT_ABOVE + HEIGHT_BELOW });
  const drawing = svg(
    "svg",
    {
      class: "timeline",
      viewBox: `0 0 ${WIDTH} ${HEIGHT_ABOVE + HEIGHT_BELOW}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": spoken(buckets),
    },
    bars,
    svg("line", { class: "time-line", x1: 0, x2: WIDTH, y1: HEIGHT_ABOVE, y2: HEIGHT_ABOVE }),
    brush,
  );
  brushable(drawing, brush, buckets, onRange);
  const places = buckets.length
    ? [buckets[0].start, buckets[buckets.length >> 1].start, buckets.at(-1).end]
    : [];
  const ends = places.map(places.at(-1) - places[0] < SHORT_SPAN_S ? moment : day);
  return el(
    "div",
    { class: "time" },
    drawing,
    el(
      "div",
      { class: "time-ends", "aria-hidden": "true" },
      ends.map((text) => el("span", {}, text)),
    ),
  );
}

const changesIn = (bucket) => KINDS.reduce((sum, kind) => sum + (bucket[kind] ?? 0), 0);

function bar(bucket, x, width, most, mostAsked) {
  let top = HEIGHT_ABOVE;
  const changes = changesIn(bucket);
  const asks = bucket.recalls ?? 0;
  const scale = (HEIGHT_ABOVE - 4) / Math.max(most, changes); // a bar that is cut keeps the proportions of its parts
  const stack = KINDS.filter((kind) => bucket[kind] > 0).map((kind) => {
    const height = Math.max(1.5, scale * bucket[kind]);
    top -= height;
    return svg("rect", { class: `time-${kind}`, x, y: top, width, height });
  });
  const asked =
    asks > 0 &&
    svg("rect", {
      class: "time-recalls",
      x,
      y: HEIGHT_ABOVE + 1.5,
      width,
      height: Math.max(1.5, ((HEIGHT_BELOW - 4) * Math.min(asks, mostAsked)) / mostAsked),
    });
  const words = [...KINDS, "recalls"]
    .filter((kind) => bucket[kind])
    .map((kind) => `${t(`time.${kind}`)} ${number(bucket[kind])}`);
  return svg(
    "g",
    {},
    svg("title", {}, [day(bucket.start), ...words].join(" · ")),
    svg("rect", { class: "time-back", x, y: 0, width, height: HEIGHT_ABOVE + HEIGHT_BELOW }),
    stack,
    asked,
    changes > most && svg("rect", { class: "bar-cut", x, y: 10, width, height: 3 }),
    asks > mostAsked && svg("rect", { class: "bar-cut", x, y: HEIGHT_ABOVE + HEIGHT_BELOW - 12, width, height: 3 }),
  );
}

function brushable(drawing, brush, buckets, onRange) {
  let from = null;
  const at = (event) => {
    const box = drawing.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / (box.width || 1)));
  };
  const span = (to) => [Math.min(from, to), Math.max(from, to)];
  drawing.addEventListener("pointerdown", (event) => {
    from = at(event);
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const [low, high] = span(at(event));
    brush.setAttribute("x", low * WIDTH);
    brush.setAttribute("width", (high - low) * WIDTH);
  });
  drawing.addEventListener("pointerup", (event) => {
    if (from === null || buckets.length === 0) return;
    const [low, high] = span(at(event));
    from = null;
    const place = (share) => buckets[Math.min(buckets.length - 1, Math.floor(share * buckets.length))];
    onRange(place(low).start, place(high).end);
  });
}

/** The legend of the colours. */
export function timeLegend() {
  return el(
    "ul",
    { class: "time-legend", "aria-hidden": "true" },
    [...KINDS, "recalls"].map((kind) => el("li", {}, el("i", { class: `time-${kind}` }), t(`time.${kind}`))),
  );
}

function spoken(buckets) {
  const sum = (kind) => buckets.reduce((all, bucket) => all + (bucket[kind] ?? 0), 0);
  return `${t("time.title")}: ${[...KINDS, "recalls"].map((kind) => `${t(`time.${kind}`)} ${number(sum(kind))}`).join(", ")}`;
}
