// Forgetting: show what would be forgotten, hide or erase it, then show the receipt. Memories are chosen one by one, by
// content, by conversation or by date. Other actions are in memory_actions.js.

import { ask } from "../api.js";
import { ask as dialog } from "../dialogs.js";
import { el, fill } from "../dom.js";
import { dropDraftsOf } from "../drafts.js";
import { form } from "../forms.js";
import { number, t, tn } from "../i18n.js";
import { failure, loading, sentence } from "../notices.js";
import { field, fromDateField, segments } from "../parts.js";
import { confirmation, receiptOf, ticks } from "./forgetting_parts.js";

const MAX_LISTED = 200; // memories shown for a conversation
const MAX_VERSIONS = 20; // older versions shown
const CRITERIA = ["query", "session", "time"];

/** Forget these memories. `mentions` are notes and sessions about them that are known already. */
export function forgetMemories(entries, done, mentions = []) {
  const title = entries.length === 1 ? t("forget.title") : tn("forget.title.several", entries.length);
  dialog(
    title,
    async (body, close) => {
      fill(body, loading());
      try {
        await decide(body, close, entries, (operation, more) => each(operation, entries, more, mentions), done);
      } catch (error) {
        fill(body, failure(error, null));
      }
    },
    { wide: true },
  );
}

/** Forget by content, conversation or date. `given` fills the form. */
export function forgetBy(given, done) {
  dialog(
    t("forget.by"),
    (body, close) => {
      let way = given.session ? "session" : "query";
      const query = el("textarea", { rows: "2", maxlength: "2000", required: true, dir: "auto" });
      const session = el("input", { type: "text", required: true, autocomplete: "off", dir: "auto" });
      session.value = given.session ?? "";
      const since = el("input", { type: "date" });
      const until = el("input", { type: "date" });
      const fields = {
        query: () => field(t("forget.query"), query, t("forget.query.hint")),
        session: () => field(t("entry.session"), session, t("forget.session.hint")),
        time: () =>
          el(
            "div",
            { class: "beside" },
            field(t("filter.since"), since),
            field(t("filter.until"), until, t("forget.time.hint")),
          ),
      };
      const named = () => ({
        query: { query: query.value.trim() },
        session: { session: session.value.trim() },
        time: whole({ since: fromDateField(since.value), until: fromDateField(until.value, { end: true }) }),
      });
      const look = async () => {
        const what = named()[way];
        if (Object.keys(what).length === 0) throw new Error(t("forget.time.none"));
        await preview(body, close, way, what, done);
      };
      const choose = () => {
        const ways = CRITERIA.map((name) => [name, t(`way.${name}`)]);
        const how = segments(t("forget.way"), ways, way, (name) => {
          way = name;
          choose();
          body.querySelector(`[data-value="${way}"]`).focus();
        });
        fill(body, form([how, fields[way]()], t("forget.look"), look, close));
      };
      query.autofocus = session.autofocus = true;
      choose();
    },
    { wide: true },
  );
}

/** Show what would be forgotten. Nothing is hidden or erased yet. */
async function preview(body, close, way, what, done) {
  if (way === "query") return candidates(body, close, await ask("entries.erase", { ...what, dryRun: true }), done);
  const found = await ask("entries.list", { ...what, states: [], limit: MAX_LISTED });
  return decide(body, close, found.entries, (operation, more) => ask(operation, { ...what, ...more }), done);
}

/** Show what would be hidden, and hide it, or show what would be erased, and erase it. `run` calls an operation. */
async function decide(body, close, entries, run, done, operation = "entries.forget") {
  const look = () => run(operation, { dryRun: true });
  const trial = await look();
  if (trial.forgotten.length === 0) {
    // All of them are hidden already.
    if (operation === "entries.forget") return decide(body, close, entries, run, done, "entries.erase");
    throw new Error(t("forget.none"));
  }
  const erases = operation === "entries.erase";
  const shown = await withVersions(entries, trial);
  const deed = () => finish(body, close, asShown(trial, look, () => run(operation, {})), done, erases);
  const erase = () => decide(body, close, entries, run, done, "entries.erase");
  fill(body, confirmation(shown, trial, deed, close, erases ? null : erase));
  return body.querySelector(".to-erase").focus();
}

/** The memories that would be forgotten, and the first of the older versions that are forgotten with them. */
async function withVersions(entries, trial) {
  const listed = entries.filter((entry) => trial.forgotten.includes(entry.id));
  const known = new Set(listed.map((entry) => entry.id));
  const more = trial.forgotten.filter((id) => !known.has(id)).slice(0, MAX_VERSIONS);
  return [...listed, ...(await Promise.all(more.map(one))).filter(Boolean)];
}

/** Forget only what was shown: memories may have been added or merged since. */
function asShown(trial, look, deed) {
  return async () => {
    const again = await look();
    const same = again.forgotten.length === trial.forgotten.length;
    if (!same || again.forgotten.some((id) => !trial.forgotten.includes(id))) throw new Error(t("forget.changed"));
    return deed();
  };
}

/** If a query clearly matches one memory, offer it; otherwise let the reader choose from the candidates. */
async function candidates(body, close, trial, done) {
  const sure = await Promise.all(trial.forgotten.map(one));
  const offered = trial.forgotten.length > 0 ? sure.filter(Boolean) : trial.candidates;
  if (offered.length === 0) throw new Error(t("forget.none"));
  const { node, chosen } = ticks(offered, trial.forgotten);
  const deed = async () => {
    const ids = chosen();
    if (ids.length === 0) throw new Error(t("forget.tick"));
    close();
    forgetMemories(
      offered.filter((entry) => ids.includes(entry.id)),
      done,
      trial.mentions,
    );
  };
  fill(body, form([el("p", {}, t("forget.candidates")), node], t("forget.look"), deed, close));
  body.querySelector("input")?.focus();
}

async function finish(body, close, deed, done, erased) {
  const receipt = await deed();
  dropDraftsOf(receipt.forgotten);
  fill(body, receiptOf(receipt, close, erased));
  body.querySelector(".dialog-actions button:last-child").focus();
  done(receipt.forgotten);
}

/** Forget each memory by its id and collect the receipts. If one fails, keep the receipts so far. */
async function each(operation, entries, more, mentions) {
  const all = { forgotten: [], covered: [], notCovered: [], noteLines: [], mentions, failed: "" };
  for (const entry of entries) {
    if (all.forgotten.includes(entry.id)) continue; // already done as a version of another memory
    try {
      const receipt = await ask(operation, { id: entry.id, ...more });
      all.noteLines = [...all.noteLines, ...receipt.noteLines];
      for (const name of ["forgotten", "covered", "notCovered", "mentions"])
        all[name] = [...new Set([...all[name], ...receipt[name]])];
    } catch (error) {
      if (all.forgotten.length === 0 || more.dryRun) throw error;
      all.failed = t("forget.failed", { n: number(all.forgotten.length), why: sentence(error) });
      break;
    }
  }
  return all;
}

const one = (id) =>
  ask("entries.get", { id }).then(
    (found) => found.entry,
    () => null,
  );

const whole = (given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
