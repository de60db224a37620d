// Actions on memories: add, edit, supersede, merge, undo, approve and reject. Forgetting is in forgetting.js.

import { ask } from "../api.js";
import { ask as dialog } from "../dialogs.js";
import { draftOf, endDraft } from "../drafts.js";
import { el, fill } from "../dom.js";
import { form } from "../forms.js";
import { t, tn } from "../i18n.js";
import { announce, sentence } from "../notices.js";
import { TYPES, choice, dateField, entryLine, field, fromDateField, invisibleWarning } from "../parts.js";
import { conflict, isConflict } from "./conflict.js";

const types = () => TYPES.map((name) => [name, t(`type.${name}`)]);

/** Importance as five radio buttons that look like stars. */
function starField(value) {
  const name = `stars-${Math.random().toString(36).slice(2)}`;
  const boxes = [1, 2, 3, 4, 5].map((star) => {
    const box = el("input", {
      type: "radio",
      name,
      value: String(star),
      checked: Math.round(value) === star,
    });
    return el(
      "label",
      { class: "star" },
      box,
      el("span", { "aria-hidden": "true" }, "★"),
      el("span", { class: "hidden" }, t("entry.importance.of", { n: star })),
    );
  });
  const node = el("fieldset", { class: "star-field" }, el("legend", {}, t("entry.importance")), boxes);
  return { node, value: () => Number(node.querySelector("input:checked")?.value ?? value) };
}

function statementFields(entry) {
  const text = el("textarea", { rows: "4", required: true, maxlength: "8000", value: entry.text ?? "" });
  const automatic = entry.type ? [] : [["", t("entry.type.automatic")]];
  const type = choice([...automatic, ...types()], entry.type ?? "");
  const importance = starField(entry.importance ?? 3);
  const tagText = el("input", { type: "text", autocomplete: "off", value: (entry.tags ?? []).join(", ") });
  return {
    text,
    nodes: [
      invisibleWarning(entry.text, ...(entry.tags ?? [])),
      field(t("entry.text"), text),
      el("div", { class: "beside" }, field(t("entry.type"), type), importance.node),
      field(t("entry.tags"), tagText, t("entry.tags.hint")),
    ],
    values: () => ({
      text: text.value.trim(),
      type: type.value || undefined,
      importance: importance.value(),
      tags: tagsOf(tagText.value),
    }),
  };
}

export function addMemory(done) {
  const draft = { key: "add" };
  const fillIn = (body, close) => {
    const fields = statementFields({});
    const keep = async () => {
      const kept = await ask("entries.add", fields.values());
      if (kept.action === "refused") throw new Error(kept.note || t("done.refused"));
      close();
      announce(t(`done.${kept.action}`));
      done(kept.entry?.id ?? "");
    };
    body.append(form(fields.nodes, t("do.add"), keep, close, { draft }));
    fields.text.autofocus = true;
  };
  dialog(t("entry.add"), fillIn, { draft: draft.key });
}

const EDITED = ["text", "type", "importance", "tags", "expiresAt"];

/** Edit a memory. A draft continues from what the reader saw then, so that later changes of others are noticed. `back` is
 *  called with its id after an approval was undone. */
export function editMemory(entry, done, { approve = false, back = done } = {}) {
  const key = `edit.${entry.id}`;
  let base = draftOf(key)?.base ?? entry;
  const draft = { key, base: seen(base) };
  const fillIn = (body, close) => {
    const fields = statementFields(base);
    const expiry = el("input", { type: "date", value: dateField(base.expiresAt) });
    const first = { ...fields.values(), expiresAt: dateField(base.expiresAt) };
    const place = el("div", { class: "conflict-place" });
    // Send only changed fields: opening the dialog must not turn 3.8 stars into 4.
    const changes = () => {
      const now = { ...fields.values(), expiresAt: expiry.value };
      const changed = EDITED.filter((name) => String(now[name] ?? "") !== String(first[name] ?? ""));
      return Object.fromEntries(
        changed.map((name) => [name, name === "expiresAt" ? (fromDateField(expiry.value, { end: true }) ?? 0) : now[name]]),
      );
    };
    const finish = () => {
      endDraft(draft);
      close();
      done();
    };
    const save = async (ifSeq) => {
      const made = await ask("entries.edit", { id: entry.id, ...changes(), ifSeq });
      if (approve) await settleStaged("approve", [entry.id], back, { edited: true });
      else announce(t("done.edited"), t("do.undo"), () => undoLater(made.entry, done));
      finish();
    };
    // Another client has changed the memory. Different fields are joined; the same field is decided by the reader.
    const settle = async () => {
      const { entry: theirs } = await ask("entries.get", { id: entry.id });
      const both = Object.keys(changes()).filter((name) => String(theirs[name]) !== String(base[name]));
      if (both.length === 0) return save(theirs.seq);
      const guarded = (act) => () => act().catch((error) => fill(place, el("p", { class: "wrong" }, sentence(error))));
      const join = async () => {
        if (both.includes("text")) fields.text.value = `${theirs.text}\n${fields.text.value}`;
        base = theirs;
        draft.base = seen(theirs);
        fill(place);
        fields.text.focus();
      };
      const choose = { theirs: finish, mine: guarded(() => save(theirs.seq)), both: guarded(join) };
      fill(place, conflict(described(base), described(theirs), described({ ...base, ...changes() }), choose));
      place.scrollIntoView({ block: "nearest" });
      return false;
    };
    const keep = () => {
      if (Object.keys(changes()).length === 0)
        return approve ? settleStaged("approve", [entry.id], back).then(finish) : finish();
      return save(base.seq).catch((error) => (isConflict(error) ? settle() : Promise.reject(error)));
    };
    const hint = base.importance >= 5 ? t("entry.expires.never.hint") : t("entry.expires.hint");
    const nodes = [place, ...fields.nodes, field(t("entry.expires"), expiry, hint)];
    body.append(form(nodes, t(approve ? "do.approve" : "do.save"), keep, close, { draft }));
    fields.text.autofocus = true;
  };
  dialog(t(approve ? "do.edit.approve" : "do.edit"), fillIn, { wide: true, draft: key });
}

const seen = (entry) => Object.fromEntries(["id", "seq", ...EDITED].map((name) => [name, entry[name]]));

/** A memory as text, for a comparison of versions. */
function described(entry) {
  const about = [`${t("entry.type")}: ${t(`type.${entry.type}`)}`, `${t("entry.importance")}: ${Math.round(entry.importance)}`];
  if (entry.tags?.length) about.push(`${t("entry.tags")}: ${entry.tags.join(", ")}`);
  if (entry.expiresAt) about.push(`${t("entry.expires")}: ${dateField(entry.expiresAt)}`);
  return `${entry.text}\n\n${about.join("\n")}`;
}

export function supersedeMemory(entry, done) {
  const key = `supersede.${entry.id}`;
  const fillIn = (body, close) => {
    let seq = entry.seq;
    const text = el("textarea", { rows: "4", required: true, maxlength: "8000", value: entry.text });
    text.autofocus = true;
    const news = el("div");
    const keep = async () => {
      try {
        const made = await ask("entries.supersede", { id: entry.id, text: text.value.trim(), ifSeq: seq });
        close();
        announce(t("done.superseded"), t("do.undo"), () => undoLater(made.entry, done));
        done(made.entry?.id);
        return true;
      } catch (error) {
        if (!isConflict(error)) throw error;
        const { entry: theirs } = await ask("entries.get", { id: entry.id });
        seq = theirs.seq;
        fill(news, el("p", { class: "warning", role: "alert" }, t("conflict.now"), " ", el("q", {}, theirs.text)));
        return false;
      }
    };
    const hint = el("p", { class: "hint" }, t("entry.supersede.hint"));
    const nodes = [hint, news, field(t("entry.text.new"), text)];
    body.append(form(nodes, t("do.supersede"), keep, close, { draft: { key } }));
  };
  dialog(t("do.supersede"), fillIn, { draft: key });
}

export function mergeMemories(entries, done) {
  const key = `merge.${entries.map((entry) => entry.id).join(".")}`;
  const fillIn = (body, close) => {
    let merged = entries;
    const all = entries.map((entry) => entry.text).join("\n");
    const text = el("textarea", { rows: "5", required: true, maxlength: "8000", value: all });
    text.autofocus = true;
    const lines = el("div", { class: "lines" }, merged.map((entry) => entryLine(entry)));
    const news = el("div");
    const keep = async () => {
      const ids = merged.map((entry) => entry.id);
      const ifSeqs = merged.map((entry) => entry.seq);
      try {
        const made = await ask("entries.merge", { ids, text: text.value.trim(), ifSeqs });
        close();
        announce(t("done.merged"), t("do.undo"), () => undoLater(made.entry, done));
        done(made.entry?.id);
        return true;
      } catch (error) {
        if (!isConflict(error)) throw error;
        merged = (await Promise.all(ids.map((id) => ask("entries.get", { id })))).map((found) => found.entry);
        fill(lines, merged.map((entry) => entryLine(entry)));
        fill(news, el("p", { class: "warning", role: "alert" }, t("conflict.now.several")));
        return false;
      }
    };
    const hint = el("p", { class: "hint" }, t("entry.merge.hint"));
    const nodes = [hint, news, lines, field(t("entry.text.merged"), text)];
    body.append(form(nodes, t("do.merge"), keep, close, { draft: { key } }));
  };
  dialog(t("do.merge"), fillIn, { wide: true, draft: key });
}

/** Give several memories a tag, and offer to undo it. */
export function tagMemories(entries, done) {
  dialog(t("do.tag"), (body, close) => {
    const input = el("input", { type: "text", required: true, autocomplete: "off", maxlength: "64" });
    input.autofocus = true;
    const save = async () => {
      const added = tagsOf(input.value);
      const changed = [];
      for (const entry of entries) {
        const tags = [...new Set([...(entry.tags ?? []), ...added])];
        if (tags.length === (entry.tags ?? []).length) continue;
        changed.push((await ask("entries.edit", { id: entry.id, tags, ifSeq: entry.seq })).entry);
      }
      close();
      const undo = async () => {
        const failed = await undoAll(changed).catch((error) => error);
        done();
        announce(failed instanceof Error ? sentence(failed) : t("done.undone"));
      };
      announce(tn("done.tagged", changed.length), t("do.undo"), undo);
      done();
    };
    const hint = el("p", { class: "hint" }, tn("entry.picked", entries.length));
    body.append(form([hint, field(t("entry.tags"), input, t("entry.tags.hint"))], t("do.tag"), save, close));
  });
}

async function undoAll(entries) {
  for (const { id, seq } of entries) await ask("entries.undo", { id, ifSeq: seq });
}

const tagsOf = (text) =>
  text
    .split(/[,，、]/)
    .map((tag) => tag.trim())
    .filter(Boolean);

/** Undo the newest change of an entry, if it is still the one the reader saw, and show the result. */
export async function undoChange(entry, done) {
  const { entries } = await ask("entries.undo", { id: entry.id, ifSeq: entry.seq });
  // After undoing a replacement, show the old memory: the new one no longer exists.
  const shown = entries.find((one) => one.id === entry.id) ?? entries[0];
  await done(shown?.id ?? null);
  announce(t("done.undone"));
}

function undoLater(entry, done) {
  undoChange(entry, done).catch((error) => announce(sentence(error)));
}

const MAX_SAID = 80; // characters of a memory in a message
export const shortened = (text) => (text.length > MAX_SAID ? `${text.slice(0, MAX_SAID)} …` : text);

const MAX_UNDO = 20; // memories that one action can undo together

/** Approve or reject waiting memories, and offer to undo exactly that: also the edit before an approval, if they were one
 *  action. `done` is called after the undo, with the id of the memory if there is one. */
export async function settleStaged(how, ids, done, { edited = false } = {}) {
  await ask(`entries.${how}`, { ids });
  if (ids.length > MAX_UNDO) return announce(t(how === "approve" ? "done.approved" : "done.rejected"));
  const now = await Promise.all(ids.map((id) => ask("entries.get", { id }).catch(() => null)));
  const name = ids.length === 1 && now[0] ? `: ${shortened(now[0].entry.text)}` : "";
  const back = async () => {
    let said = "";
    try {
      for (const { entry } of now.filter(Boolean)) {
        const { entries } = await ask("entries.undo", { id: entry.id, ifSeq: entry.seq });
        if (edited) await ask("entries.undo", { id: entry.id, ifSeq: entries.find((one) => one.id === entry.id)?.seq });
      }
    } catch (error) {
      said = sentence(error);
    }
    await done(ids.length === 1 ? ids[0] : undefined);
    const { entry } = await ask("entries.get", { id: ids[0] }).catch(() => ({ entry: null }));
    const one = entry && ids.length === 1 && t("done.waits.again.one", { text: shortened(entry.text) });
    announce(said || one || tn("done.waits.again", ids.length));
  };
  return announce(t(`done.${how}.what`, { name }), t("do.undo"), back);
}
