// Health: is the index fresh, who answers, what is missing and why, and how each finding is mended.

import { ask, givenUp, newest } from "../api.js";
import { el, fill, icon, measure } from "../dom.js";
import { isLive } from "../events.js";
import { bytes, moment, number, t, tn } from "../i18n.js";
import { failure, loading, said, sentence } from "../notices.js";
import { facts, when } from "../parts.js";

export function healthView(main) {
  const get = newest();
  let deep = false;
  let running = false;
  const body = el("div", { class: "health" });
  const work = el("div", { class: "sync-work", role: "status", "aria-live": "polite" });
  const syncButton = el(
    "button",
    { type: "button", class: "primary", onclick: () => sync() },
    icon("sync"),
    t("health.sync"),
  );
  const check = el(
    "button",
    {
      type: "button",
      class: "quiet",
      onclick: () => {
        deep = true;
        load();
      },
    },
    t("health.deep"),
  );
  fill(
    main,
    el("header", { class: "view-head" }, el("h1", {}, t("view.health")), check, syncButton),
    work,
    body,
  );

  async function load({ quiet = false } = {}) {
    if (!quiet) fill(body, loading());
    try {
      draw(await get("health.get", deep ? { deep: true } : {}));
    } catch (error) {
      if (!givenUp(error))
        fill(
          body,
          failure(error, () => load()),
        );
    }
  }

  async function sync() {
    running = true;
    syncButton.disabled = true;
    fill(work, el("p", {}, t("health.syncing")));
    try {
      const report = await ask("memory.sync");
      fill(work);
      said(
        t("health.synced", {
          changed: number(report.changed ?? 0),
          removed: number(report.removed ?? 0),
          seconds: number(report.seconds ?? 0, 1),
        }),
      );
    } catch (error) {
      fill(work, el("p", { class: "wrong", role: "alert" }, sentence(error)));
    } finally {
      running = false;
      syncButton.disabled = false;
      load({ quiet: true });
    }
  }

  function progress(data) {
    if (!data || !data.total) return;
    if (data.done >= data.total && !running) return fill(work);
    const bar = measure(el("i", { class: "work-bar" }), "--share", data.done / data.total);
    return fill(
      work,
      el(
        "p",
        {},
        t(`stage.${data.stage}`),
        ` ${number(data.done)} / ${number(data.total)} `,
        el("span", { class: "faint" }, data.path ?? ""),
      ),
      bar,
    );
  }

  function draw(health) {
    fill(
      body,
      el(
        "p",
        { class: "verdict", "data-state": health.status },
        el("i", { class: "dot", "aria-hidden": "true" }),
        t(`health.${health.status}`),
      ),
      el(
        "div",
        { class: "cards" },
        freshness(health.freshness ?? {}),
        embedder(health.embedder ?? {}, health.backend),
        sizes(health.sizes ?? {}),
        queue(health),
      ),
      findings(health.findings ?? []),
      errors(health.errors ?? []),
    );
  }

  return {
    show: () => load(),
    refresh(events) {
      if (events.has("progress")) progress(events.get("progress"));
      if (events.has("sync") && !running) fill(work);
      if (["sync", "notes", "entries", "capture"].some((kind) => events.has(kind))) load({ quiet: true });
    },
    close: () => get.stop(),
  };
}

function card(title, ...children) {
  return el("section", { class: "card" }, el("h2", {}, t(title)), children);
}

function freshness(fresh) {
  const behind = fresh.behind ?? 0;
  return card(
    "health.freshness",
    el("p", { class: "figure" }, behind ? tn("health.behind", behind) : t("health.current")),
    facts([
      [t("health.lastSync"), fresh.lastSync ? when(fresh.lastSync) : t("health.never")],
      [
        t("health.watching"),
        typeof fresh.watching === "string" ? fresh.watching : t(fresh.watching ? "health.yes" : "health.no"),
      ],
      [t("health.page"), t(isLive() ? "frame.live" : "frame.still")],
    ]),
  );
}

function embedder(who, backend) {
  const engine = typeof backend === "string" ? { name: backend } : (backend ?? {});
  const why = [who.degraded, engine.degraded].filter(Boolean);
  return card(
    "health.embedder",
    el("p", { class: "figure" }, [who.provider, who.model].filter(Boolean).join(" · ") || "–"),
    why.map((text) => el("p", { class: "degraded" }, text)),
    facts([
      [t("health.backend"), engine.name ?? engine.backend],
      [t("health.engine"), engine.vectorEngine ?? who.vectorEngine],
      [t("health.embedded"), Number.isFinite(who.embedded) ? number(who.embedded) : null],
    ]),
  );
}

const IN_BYTES = /bytes|size/i;

function sizes(given) {
  const files = given.files;
  const rows = Object.entries(given)
    .filter(([, value]) => Number.isFinite(value))
    .map(([name, value]) => [t(`size.${name}`), IN_BYTES.test(name) ? bytes(value) : number(value)]);
  return card(
    "health.sizes",
    Number.isFinite(files) && el("p", { class: "figure" }, tn("count.files", files)),
    facts(rows),
  );
}

function queue(health) {
  const waiting = health.queue ?? {};
  const rows = Object.entries(typeof waiting === "object" ? waiting : { pending: waiting })
    .filter(([, value]) => value !== null && typeof value !== "object")
    .map(([name, value]) => [
      t(`queue.${name}`),
      typeof value === "boolean"
        ? t(value ? "health.yes" : "health.no")
        : typeof value === "number"
          ? number(value, 1)
          : value,
    ]);
  return card(
    "health.queue",
    rows.length ? facts(rows) : el("p", { class: "faint" }, t("health.queue.empty")),
  );
}

const RANK = { wrong: 0, note: 1, ok: 2 };

function findings(found) {
  if (found.length === 0) return null;
  const sorted = [...found].sort((a, b) => (RANK[a.state] ?? 1) - (RANK[b.state] ?? 1));
  return card(
    "health.findings",
    el(
      "ul",
      { class: "findings" },
      sorted.map((one) =>
        el(
          "li",
          { "data-state": one.state },
          el("span", { class: "state" }, t(`finding.${one.state}`)),
          el(
            "div",
            {},
            el("p", {}, el("b", {}, one.name), " ", one.text),
            one.mend && el("p", { class: "mend" }, one.mend),
          ),
        ),
      ),
    ),
  );
}

function errors(found) {
  if (found.length === 0) return null;
  return card(
    "health.errors",
    el(
      "ul",
      { class: "plain-list" },
      found.map((one) =>
        el(
          "li",
          {},
          typeof one === "string"
            ? one
            : [
                one.at && el("time", { class: "faint" }, `${moment(one.at)} `),
                [one.path, one.text ?? one.reason ?? one.error].filter(Boolean).join(": "),
              ],
        ),
      ),
    ),
  );
}
