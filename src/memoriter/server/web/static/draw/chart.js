// Bars over days, with a table of the same numbers for readers who cannot see them.

import { el, svg } from "../dom.js";
import { day, few, number, t } from "../i18n.js";
import { topOf } from "./scale.js";

const WIDTH = 600;
const HEIGHT = 120;
const CUT = 7; // height of the gap in a bar that is cut

/** Draw a number of each day as bars. A series has a `name` and a function `of(day)`. The table also has `beside`. */
export function chart({ title, now, days, series, beside = [], cut = true }) {
  const values = days.map(series.of);
  const top = cut ? topOf(values) : Math.max(1, ...values);
  const step = WIDTH / Math.max(1, days.length);
  return el(
    "figure",
    { class: "card chart" },
    el("figcaption", {}, el("h3", {}, title), el("b", {}, now)),
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `${title}: ${now}`,
      },
      days.map((one, index) => bar(one, index * step, step, top, series)),
      svg("line", { class: "time-line", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }),
    ),
    el(
      "div",
      { class: "time-ends", "aria-hidden": "true" },
      el("span", {}, day(days[0].start)),
      el("span", {}, t("home.scale", { n: few(Math.round(top)) })),
      el("span", {}, t("home.today")),
    ),
    el("details", { class: "chart-table" }, el("summary", {}, t("home.table")), table(days, [series, ...beside])),
  );
}

function bar(one, x, step, top, { name, of }) {
  const value = of(one);
  const width = Math.max(1, step - Math.min(3, step / 4));
  const height = value > 0 ? Math.max(1.5, ((HEIGHT - 2) * Math.min(value, top)) / top) : 0;
  return svg(
    "g",
    {},
    svg("title", {}, `${day(one.start)} · ${t(`home.${name}`)} ${number(value)}`),
    svg("rect", { class: "time-back", x, y: 0, width: step, height: HEIGHT }),
    svg("rect", { class: `bar-${name}`, x, y: HEIGHT - height, width, height }),
    value > top && svg("rect", { class: "bar-cut", x, y: CUT, width, height: CUT / 2 }),
  );
}

function table(days, series) {
  const head = ["day", ...series.map(({ name }) => name)];
  return el(
    "div",
    { class: "wide", tabindex: "0" },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, t(`home.${name}`))))),
      el(
        "tbody",
        {},
        days.toReversed().map((one) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, day(one.start)),
            series.map(({ of }) => el("td", {}, number(of(one)))),
          ),
        ),
      ),
    ),
  );
}
