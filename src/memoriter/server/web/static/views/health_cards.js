// The cards of the Health view, each from its part of the answer.

import { el, measure, withCode } from "../dom.js";
import { isLive } from "../events.js";
import { bytes, moment, number, t, tn, translated } from "../i18n.js";
import { facts, when } from "../parts.js";

function card(title, ...children) {
  return el(
    "section",
    { class: `card ${title.slice(title.indexOf(".") + 1)}` },
    el("h2", {}, t(title)),
    children,
  );
}

const figure = (text) => el("p", { class: "figure" }, text);

/** How far the index is behind the files, and what is pending. */
export function freshness({ behind, lastSync, watching }, queue) {
  const waiting = Object.entries(queue).filter(([, count]) => count > 0);
  return card(
    "health.freshness",
    figure(behind ? tn("health.behind", behind) : t(lastSync ? "health.current" : "health.unsynced")),
    facts([
      [t("health.lastSync"), lastSync ? when(lastSync) : t("health.never")],
      [t("health.watching"), watching === "watching" ? t("health.yes") : (watching ?? t("health.no"))],
      [t("health.page"), t(isLive() ? "frame.live" : "frame.still")],
      [t("health.queue"), waiting.length === 0 && t("health.queue.empty")],
      ...waiting.map(([name, count]) => [t(`queue.${name}`), number(count)]),
    ]),
  );
}

/** How much has no vector yet. Its card says why, so no other card repeats it. */
export const missing = (queue) => queue.pending + queue.pendingEntries;

/** What has no vector yet, what that means or why it is so, how far it is, and a way to finish it. */
export function vectors(queue, sizes, degraded, finish) {
  if (missing(queue) === 0) return null;
  const total = sizes.chunks + sizes.entries;
  const done = Math.max(0, total - missing(queue));
  return el(
    "section",
    { class: "card vectors", role: "status" },
    el("h2", {}, t("health.vectors")),
    ...(degraded
      ? [el("p", { class: "degraded" }, withCode(translated(degraded)))]
      : [
          queue.pendingEntries > 0 && el("p", {}, tn("health.vectors.entries", queue.pendingEntries)),
          queue.pending > 0 && el("p", {}, tn("health.vectors.chunks", queue.pending)),
          el("p", { class: "faint" }, t("health.vectors.effect")),
        ]),
    el("p", {}, t("health.vectors.done", { done: number(done), total: number(total) })),
    measure(el("i", { class: "work-bar" }), "--share", total ? done / total : 0),
    el("p", {}, el("button", { type: "button", class: "quiet", "data-do": "finish", onclick: finish }, t("health.finish"))),
  );
}

export function embedder(who, degraded, backend, fallback) {
  return card(
    "health.embedder",
    figure(who.model || who.provider),
    degraded && el("p", { class: "degraded" }, withCode(translated(degraded))),
    facts([
      [t("health.provider"), who.provider],
      [t("health.backend"), fallback ? t("health.fallback", { backend }) : backend],
      [t("health.engine"), who.vectorEngine],
      [t("health.embedded"), tn("count.chunks", who.embedded)],
    ]),
  );
}

const COUNT_NAMES = ["files", "chunks", "entries"];

export function sizes(given) {
  const stored = Object.entries(given).filter(([name, value]) => !COUNT_NAMES.includes(name) && value > 0);
  const kept = stored.filter(([name]) => name !== "notesBytes"); // notes are the owner's files, not data of memoriter
  return card(
    "health.sizes",
    figure(bytes(kept.reduce((sum, [, value]) => sum + value, 0))),
    facts([
      ...COUNT_NAMES.map((name) => [t(`size.${name}`), number(given[name])]),
      ...stored.map(([name, value]) => [t(`size.${name}`), bytes(value)]),
    ]),
  );
}

const STATE_ORDER = { wrong: 0, note: 1, ok: 2 };

export function findings(found) {
  if (found.length === 0) return null;
  const sorted = [...found].sort((a, b) => STATE_ORDER[a.state] - STATE_ORDER[b.state]);
  return card("health.findings", el("ul", { class: "findings" }, sorted.map(finding)));
}

function finding({ name, state, text, fix }) {
  return el(
    "li",
    { "data-state": state },
    el("span", { class: "state" }, t(`finding.${state}`)),
    el(
      "div",
      {},
      el("p", {}, el("b", {}, t(`check.${name}`)), " ", withCode(translated(text))),
      fix && el("p", { class: "finding-fix" }, withCode(translated(fix))),
    ),
  );
}

export function errors(found) {
  if (found.length === 0) return null;
  const line = ({ at, room, text }) =>
    el("li", {}, el("span", { class: "faint" }, `${moment(at)} · ${room} `), text);
  return card("health.errors", el("ul", { class: "plain-list" }, found.map(line)));
}
