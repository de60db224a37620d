// Health: whether the index is up to date, which embedder answers, what is missing, and how to fix it. The cards are in
// health_cards.js.

import { ask, isAborted, news, newest } from "../api.js";
import { el, fill, icon, measure, refill } from "../dom.js";
import { number, t } from "../i18n.js";
import { failure, loading, announce, sentence } from "../notices.js";
import { programHead } from "../parts.js";
import { embedder, errors, findings, freshness, missing, sizes, vectors } from "./health_cards.js";

const AGAIN_MS = 3000; // while vectors are computed

export function healthView(main) {
  const get = newest();
  const isNew = news();
  let deep = false;
  let running = false;
  let late = 0; // when a sync started that takes longer than a request may; an event tells its end
  let again = 0;
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
    programHead("health", check, syncButton),
    work,
    body,
  );

  async function load({ quiet = false } = {}) {
    if (!quiet) fill(body, loading());
    try {
      const health = await get("health.get", deep ? { deep: true } : {});
      if (isNew(health) || !quiet || again) draw(health);
    } catch (error) {
      if (isAborted(error)) return;
      isNew.forget();
      fill(
        body,
        failure(error, () => load()),
      );
    }
  }

  async function sync() {
    const start = performance.now();
    running = true;
    syncButton.disabled = true;
    fill(work, el("p", {}, t("health.syncing")));
    try {
      finished(await ask("memory.sync"), start);
    } catch (error) {
      if (error.status === 504) late = start;
      fill(work, late ? el("p", {}, t("health.syncing.long")) : el("p", { class: "wrong", role: "alert" }, sentence(error)));
    } finally {
      running = false;
      syncButton.disabled = false;
      load({ quiet: true });
    }
  }

  function finished({ changed = 0, removed = 0, seconds = 0 }, start) {
    late = 0;
    fill(work);
    const took = number(seconds || (performance.now() - start) / 1000, 1);
    announce(t("health.synced", { changed: number(changed), removed: number(removed), seconds: took }));
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
    clearTimeout(again);
    const waits = missing(health.queue) > 0;
    if (waits) again = setTimeout(() => load({ quiet: true }), AGAIN_MS);
    const { degraded } = health.embedder;
    refill(
      body,
      el(
        "p",
        { class: "verdict", "data-state": health.status },
        el("i", { class: "dot", "aria-hidden": "true" }),
        t(`health.${health.status}`),
      ),
      vectors(health.queue, health.sizes, degraded, sync),
      el(
        "div",
        { class: "cards" },
        freshness(health.freshness, health.queue),
        embedder(health.embedder, !waits && degraded, health.backend, health.fallback),
        sizes(health.sizes),
      ),
      findings(health.findings.filter(({ name }) => !waits || name !== "vectors")),
      errors(health.errors),
    );
  }

  return {
    show: () => load(),
    refresh(events) {
      if (events.has("progress")) progress(events.get("progress"));
      if (events.has("sync") && late) finished(events.get("sync"), late);
      else if (events.has("sync") && !running) fill(work);
      if (["sync", "notes", "entries", "capture"].some((kind) => events.has(kind))) load({ quiet: true });
    },
    close: () => (clearTimeout(again), get.stop()),
  };
}
