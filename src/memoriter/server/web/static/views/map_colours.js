// The colours of points on the map: by type, by age, or by how often a memory was used.

import { el } from "../dom.js";
import { themeColour } from "../draw/types.js";
import { number, t } from "../i18n.js";
import { TYPES } from "../parts.js";

export const COLOURINGS = ["type", "age", "use"];

const DAY_S = 86_400;
// The upper ends of the steps of each scale. What is beyond the last has the last step.
const STEPS = { age: [DAY_S, 7 * DAY_S, 30 * DAY_S, 180 * DAY_S], use: [0, 1, 5, 20] };
const STEP_COUNT = 5;

function stepOf(colouring, point) {
  const value = colouring === "age" ? Date.now() / 1000 - point.createdAt : (point.accessCount ?? 0);
  const found = STEPS[colouring].findIndex((end) => value <= end);
  return found < 0 ? STEP_COUNT - 1 : found;
}

/** Return a function from a point to its colour in the current theme, for one drawing. */
export function painter(colouring) {
  const isType = colouring === "type";
  const keys = isType ? TYPES : Array.from({ length: STEP_COUNT }, (_, step) => step);
  const colours = new Map(keys.map((key) => [key, themeColour(isType ? "data-type" : "data-step", key)]));
  return isType
    ? (point) => colours.get(point.type) ?? colours.get("other")
    : (point) => colours.get(stepOf(colouring, point));
}

/** The steps of a scale, each with its colour and the number of memories. */
export function rampLegend(points, colouring) {
  const counts = new Array(STEP_COUNT).fill(0);
  for (const point of points) counts[stepOf(colouring, point)]++;
  return el(
    "ul",
    { class: "ramp" },
    counts.map((count, step) =>
      el(
        "li",
        {},
        el("i", { "data-step": step }),
        t(`map.${colouring}.${step}`),
        " ",
        el("span", { class: "faint" }, number(count)),
      ),
    ),
  );
}
