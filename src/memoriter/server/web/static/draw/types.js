// Each type of memory has its own colour and shape, so that readers do not depend on colour alone.

import { el, svg } from "../dom.js";

const SHAPES = {
  user_preference: "M0-5A5 5 0 1 1 0 5 5 5 0 1 1 0-5z",
  project_context: "M-4.4-4.4h8.8v8.8h-8.8z",
  technical_decision: "M0-5.8 5.8 0 0 5.8-5.8 0z",
  workflow: "M0-5.2 5.2 4.2H-5.2z",
  fact: "M0 5.2 5.2-4.2H-5.2z",
  skill: "M-1.8-5.4h3.6v3.6h3.6v3.6h-3.6v3.6h-3.6v-3.6h-3.6v-3.6h3.6z",
  relationship: "M0-5.8 1.5-2 5.5-1.8 2.4.7 3.4 4.7 0 2.5-3.4 4.7-2.4.7-5.5-1.8-1.5-2z",
  other: "M0-5A5 5 0 1 1 0 5 5 5 0 1 1 0-5zM0-2.4A2.4 2.4 0 1 0 0 2.4 2.4 2.4 0 1 0 0-2.4z",
};

export function shape(type) {
  return SHAPES[type] ?? SHAPES.other;
}

/** The symbol of a type, for a legend. */
export function sign(type) {
  return svg(
    "svg",
    { class: "sign", viewBox: "-7 -7 14 14", "aria-hidden": "true", "data-type": type },
    svg("path", { d: shape(type), "fill-rule": "evenodd" }),
  );
}

/** The colour that the current theme gives to an element with this attribute. */
export function themeColour(name, value) {
  const probe = el("i", { class: "hidden sign", [name]: value });
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
