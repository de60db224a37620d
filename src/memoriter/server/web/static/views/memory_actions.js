// Actions on memories: add, edit, supersede, merge, undo, approve and reject. Forgetting is in forgetting.js.

import { ask } from "../api.js";
import { ask as dialog, form } from "../dialogs.js";
import { el } from "../dom.js";
import { t } from "../i18n.js";
import { announce, sentence } from "../notices.js";
import { TYPES, choice, dateField, entryLine, field, fromDateField, invisibleWarning } from "../parts.js";

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
      tags: tagText.value
        .split(/[,，、]/)
        .map((tag) => tag.trim())
        .filter(Boolean),
    }),
  };
}

export function addMemory(done) {
  dialog(t("entry.add"), (body, close) => {
    const fields = statementFields({});
    const keep = async () => {
      const kept = await ask("entries.add", fields.values());
      if (kept.action === "refused") throw new Error(kept.note || t("done.refused"));
      close();
      announce(t(`done.${kept.action}`));
      done(kept.entry?.id ?? "");
    };
    body.append(form(fields.nodes, t("do.add"), keep, close));
    fields.text.autofocus = true;
  });
}

export function editMemory(entry, done) {
  dialog(t("do.edit"), (body, close) => {
    const fields = statementFields(entry);
    const expiry = el("input", { type: "date", value: dateField(entry.expiresAt) });
    const before = JSON.stringify([fields.values(), expiry.value]);
    const first = fields.values();
    const keep = async () => {
      // Send only changed fields: opening the dialog must not turn 3.8 stars into 4.
      const now = Object.entries(fields.values());
      const changed = Object.fromEntries(
        now.filter(([name, value]) => String(value) !== String(first[name])),
      );
      if (expiry.value !== dateField(entry.expiresAt))
        changed.expiresAt = fromDateField(expiry.value, { end: true }) ?? 0;
      if (JSON.stringify([fields.values(), expiry.value]) !== before) {
        const made = await ask("entries.edit", { id: entry.id, ...changed, ifSeq: entry.seq });
        announce(t("done.edited"), t("do.undo"), () => undoLater(made.entry, done));
      }
      close();
      done();
    };
    const hint = entry.importance >= 5 ? t("entry.expires.never.hint") : t("entry.expires.hint");
    body.append(form([...fields.nodes, field(t("entry.expires"), expiry, hint)], t("do.save"), keep, close));
    fields.text.autofocus = true;
  });
}

export function supersedeMemory(entry, done) {
  dialog(t("do.supersede"), (body, close) => {
    const text = el("textarea", { rows: "4", required: true, maxlength: "8000", value: entry.text });
    text.autofocus = true;
    const keep = async () => {
      const made = await ask("entries.supersede", {
        id: entry.id,
        text: text.value.trim(),
        ifSeq: entry.seq,
      });
      close();
      announce(t("done.superseded"), t("do.undo"), () => undoLater(made.entry, done));
      done(made.entry?.id);
    };
    const hint = el("p", { class: "hint" }, t("entry.supersede.hint"));
    body.append(form([hint, field(t("entry.text.new"), text)], t("do.supersede"), keep, close));
  });
}

export function mergeMemories(entries, done) {
  const fillIn = (body, close) => {
    const all = entries.map((entry) => entry.text).join("\n");
    const text = el("textarea", { rows: "5", required: true, maxlength: "8000", value: all });
    text.autofocus = true;
    const keep = async () => {
      const ids = entries.map((entry) => entry.id);
      const made = await ask("entries.merge", {
        ids,
        text: text.value.trim(),
        ifSeqs: entries.map((entry) => entry.seq),
      });
      close();
      announce(t("done.merged"), t("do.undo"), () => undoLater(made.entry, done));
      done(made.entry?.id);
    };
    const lines = el(
      "div",
      { class: "lines" },
      entries.map((entry) => entryLine(entry)),
    );
    const hint = el("p", { class: "hint" }, t("entry.merge.hint"));
    body.append(form([hint, lines, field(t("entry.text.merged"), text)], t("do.merge"), keep, close));
  };
  dialog(t("do.merge"), fillIn, { wide: true });
}

/** Undo the newest change of an entry, if it is still the one the reader saw, and show the result. */
export async function undoChange(entry, done) {
  const { entries } = await ask("entries.undo", { id: entry.id, ifSeq: entry.seq });
  announce(t("done.undone"));
  // After undoing a replacement, show the old memory: the new one no longer exists.
  const shown = entries.find((one) => one.id === entry.id) ?? entries[0];
  done(shown?.id ?? null);
}

function undoLater(entry, done) {
  undoChange(entry, done).catch((error) => announce(sentence(error)));
}

const MAX_UNDO = 20; // memories that one action can undo together

/** Approve or reject waiting memories, and offer to undo exactly that. */
export async function settleStaged(how, ids, done) {
  await ask(`entries.${how}`, { ids });
  const text = t(how === "approve" ? "done.approved" : "done.rejected");
  if (ids.length > MAX_UNDO) return announce(text);
  const now = await Promise.all(ids.map((id) => ask("entries.get", { id }).catch(() => null)));
  const back = async () => {
    try {
      for (const { entry } of now.filter(Boolean)) await ask("entries.undo", { id: entry.id, ifSeq: entry.seq });
      announce(t("done.undone"));
    } catch (error) {
      announce(sentence(error));
    }
    done();
  };
  return announce(text, t("do.undo"), back);
}
