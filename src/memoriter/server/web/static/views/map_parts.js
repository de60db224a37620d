// Parts around the map: the buttons above it, the legend below it, and one row of the list.

import { el, fill } from "../dom.js";
import { sign } from "../draw/types.js";
import { number, t } from "../i18n.js";
import { TYPES, choice, segments, stars, when } from "../parts.js";
import { address } from "../router.js";
import { COLOURINGS } from "./map_colours.js";

const ZOOM_STEP = 1.4; // zoom factor of one click

/** Choose what dragging does, and zoom without a wheel. */
export function mapTools(mode, switchMode, drawing, colouring, switchColour) {
  const modes = ["move", "brush"].map((key) => [key, t(`map.${key}`)]);
  const button = (text, name, act) =>
    el(
      "button",
      {
        type: "button",
        class: "quiet square",
        "data-value": name,
        "aria-label": name,
        title: name,
        onclick: act,
      },
      text,
    );
  return [
    segments(t("map.mode"), modes, mode, switchMode),
    el(
      "label",
      { class: "inline" },
      t("map.colour"),
      choice(COLOURINGS.map((key) => [key, t(`map.colour.${key}`)]), colouring, switchColour, { "data-value": "colour" }),
    ),
    el("span", { class: "grow" }),
    button("−", t("map.out"), () => drawing.zoom(1 / ZOOM_STEP)),
    button("+", t("map.in"), () => drawing.zoom(ZOOM_STEP)),
    button("○", t("map.reset"), () => drawing.reset()),
  ];
}

/** The label of the point under the pointer. */
export function mapTip(canvas) {
  const node = el("div", { class: "map-tip", "aria-hidden": "true" });
  const show = (point, x, y) => {
    node.classList.toggle("on", Boolean(point));
    if (!point) return;
    fill(node, el("b", {}, t(`type.${point.type}`)), el("span", {}, point.text));
    node.style.left = `${Math.min(x, canvas.clientWidth - 240)}px`;
    node.style.top = `${y + 14}px`;
  };
  return { node, show };
}

/** The names of regions, where their memories are. A name that would cover another is hidden. */
export function regionNames() {
  const node = el("div", { class: "map-names", "aria-hidden": "true" });
  let shown = null;
  let labels = [];
  const place = (regions, toX, toY, { width, height }) => {
    if (regions !== shown) {
      shown = regions;
      labels = regions.map(({ name }) => el("span", {}, name));
      fill(node, labels);
    }
    const taken = [];
    regions.forEach(({ name, x, y }, index) => {
      const [left, top] = [toX(x), toY(y)];
      const room = 8 * name.length + 24;
      const isFree = taken.every((other) => Math.abs(other.left - left) > room || Math.abs(other.top - top) > 24);
      const isInside = left >= 40 && top >= 12 && left <= width - 40 && top <= height - 12;
      labels[index].hidden = !isFree || !isInside;
      if (labels[index].hidden) return;
      taken.push({ left, top });
      labels[index].style.translate = `${Math.round(left)}px ${Math.round(top)}px`;
    });
  };
  return { node, place };
}

/** The types on the map, each with a toggle. */
export function mapLegend(points, off, switchType) {
  const counts = new Map();
  for (const { type } of points) counts.set(type, (counts.get(type) ?? 0) + 1);
  return TYPES.filter((type) => counts.has(type)).map((type) =>
    el(
      "button",
      {
        type: "button",
        class: "plain",
        "data-type": type,
        "aria-pressed": off.has(type) ? "false" : "true",
        onclick: () => switchType(type),
      },
      sign(type),
      t(`type.${type}`),
      el("span", { class: "faint" }, number(counts.get(type))),
    ),
  );
}

/** One row of the list, for readers who cannot see the map or use a pointer. */
export function pointLine(point) {
  return el(
    "a",
    { class: "entry-line row", href: address("memories", point.id) },
    el("span", { class: "entry-text" }, sign(point.type), point.text),
    el(
      "span",
      { class: "entry-facts" },
      el("span", { class: "faint" }, t(`type.${point.type}`)),
      stars(point.importance),
      when(point.createdAt),
    ),
  );
}
