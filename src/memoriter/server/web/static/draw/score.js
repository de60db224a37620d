// A score as one bar. Each part is as long as its contribution, and the part that age subtracts is hatched.

import { el, measure } from "../dom.js";
import { number, t } from "../i18n.js";

/** The bar with its legend. The full width is a score of 1. */
export function scoreBar(score, parts = []) {
  const gains = parts.filter((part) => part.contribution > 0);
  const losses = parts.filter((part) => part.contribution < 0);
  const top = gains.reduce((sum, part) => sum + part.contribution, 0);
  const spoken = parts.map((part) => `${t(`part.${part.name}`)} ${amount(part.contribution)}`).join(", ");
  const track = el(
    "div",
    {
      class: "score-track",
      role: "img",
      "aria-label": `${t("score.title", { score: amount(score) })}${spoken ? `: ${spoken}` : ""}`,
    },
    gains.map((part) =>
      measure(el("span", { class: "score-part", "data-part": part.name }), "--share", part.contribution),
    ),
  );
  if (losses.length && top > score) {
    const loss = el("span", { class: "score-loss" });
    measure(measure(loss, "--from", Math.max(0, score)), "--share", top - Math.max(0, score));
    track.append(loss);
  }
  return el("div", { class: "score" }, track, legend(parts));
}

function legend(parts) {
  return el(
    "ul",
    { class: "score-legend", "aria-hidden": "true" },
    parts.map((part) =>
      el(
        "li",
        { title: because(part) || null },
        el("i", { "data-part": part.name }),
        `${t(`part.${part.name}`)} `,
        el("b", {}, amount(part.contribution)),
      ),
    ),
  );
}

/** The same parts as a table: value, weight and contribution. */
export function scoreTable(score, parts = []) {
  const row = (part) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("i", { "data-part": part.name }), t(`part.${part.name}`)),
      el("td", {}, amount(part.value, 3)),
      el("td", {}, `× ${amount(part.weight, 3)}`),
      el("td", {}, amount(part.contribution, 3)),
      el("td", { class: "detail" }, because(part)),
    );
  return el(
    "table",
    { class: "score-table" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        ["part", "value", "weight", "gives", "detail"].map((name) =>
          el("th", { scope: "col" }, t(`score.${name}`)),
        ),
      ),
    ),
    el("tbody", {}, parts.map(row)),
    el(
      "tfoot",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "row" }, t("score.sum")),
        el("td"),
        el("td"),
        el("td", {}, amount(score, 3)),
        el("td"),
      ),
    ),
  );
}

/** Format a score or a part of it. Tables show one more digit. */
export function amount(value, digits = 2) {
  return number(Math.abs(value) < 10 ** -digits / 2 ? 0 : value, digits, { exactly: true });
}

/** The reason for a part, in the reader's language if it is known. */
function because({ name, detail = "" }) {
  const terms = /^matches (.*)$/.exec(detail)?.[1];
  if (terms) return t("part.keyword.why", { terms });
  const stars = /^([\d.]+) of 5$/.exec(detail)?.[1];
  if (stars) return t("entry.importance.of", { n: stars });
  return ["vector", "context", "date", "rerank"].includes(name) ? t(`part.${name}.why`) : detail;
}
