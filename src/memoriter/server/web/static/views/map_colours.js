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

/** Return a function from a point to its step. */
function stepper(colouring) {
  const now = Date.now() / 1000;
  const ends = STEPS[colouring];
  const value = colouring === "age" ? (point) => now - point.createdAt : (point) => point.accessCount ?? 0;
  return (point) => {
    const it = value(point);
    let step = 0;
    while (step < STEP_COUNT - 1 && it > ends[step]) step++;
    return step;
  };
}

/** The inks of the current theme, and `inkOf(point)`, the index of a point's ink. The symbol always shows the type. */
export function painter(colouring) {
  const types = new Map(TYPES.map((type, index) => [type, index]));
  const typeOf = (point) => types.get(point.type) ?? TYPES.length - 1; // the last one is "other"
  if (colouring === "type")
    return { inks: TYPES.map((type) => ({ type, colour: themeColour("data-type", type) })), inkOf: typeOf };
  const colours = Array.from({ length: STEP_COUNT }, (_, step) => themeColour("data-step", step));
  const stepOf = stepper(colouring);
  return {
    inks: TYPES.flatMap((type) => colours.map((colour) => ({ type, colour }))),
    inkOf: (point) => typeOf(point) * STEP_COUNT + stepOf(point),
  };
}

/** The steps of a scale, each with its colour and the number of memories. */
export function rampLegend(points, colouring) {
  const counts = new Array(STEP_COUNT).fill(0);
  const stepOf = stepper(colouring);
  for (const point of points) counts[stepOf(point)]++;
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
