// Notes of agents that wait for approval. They stand above the memories that wait. To reject a note removes it; every
// decision can be undone.

import { ask } from "../api.js";
import { ask as dialog } from "../dialogs.js";
import { el, fill, refill } from "../dom.js";
import { form } from "../forms.js";
import { t, tn } from "../i18n.js";
import { announce, sentence } from "../notices.js";
import { field, invisibleWarning, pathName, when } from "../parts.js";
import { address } from "../router.js";

const FRONT_MATTER = /^---\n[\s\S]*?\n---\n+/;

// Each decision returns the change that undoes it.
async function approve(note) {
  const { approved } = await ask("notes.approve", { paths: [note.path] });
  return { path: note.path, text: note.text, version: approved[0].version };
}

async function reject(note) {
  await ask("notes.put", { path: note.path, version: note.version, remove: true });
  return { path: note.path, text: note.text };
}

/** A note on its own page that waits for approval: a sentence and the decision. Null for every other note. `done` is
 *  called afterwards, with the path, or empty if the note is gone. */
export function waitingBanner(text, path, done) {
  if (!/^approval: "?pending"?$/m.test(FRONT_MATTER.exec(text)?.[0] ?? "")) return null;
  const decide = (how) => async () => {
    try {
      const note = await ask("notes.text", { path });
      const change = await (how === "approve" ? approve(note) : reject(note));
      const back = () => ask("notes.put", change).then(() => done(path), (error) => announce(sentence(error)));
      announce(t(how === "approve" ? "inbox.approved" : "inbox.rejected"), t("do.undo"), back);
      done(how === "approve" ? path : "");
    } catch (error) {
      announce(sentence(error));
    }
  };
  const button = (how, kind) => el("button", { type: "button", class: kind, "data-do": how, onclick: decide(how) }, t(`do.${how}`));
  return el(
    "div",
    { class: "waiting", role: "note" },
    el("p", {}, t("inbox.waits")),
    el("p", { class: "note-actions" }, button("approve", "primary"), button("reject", "quiet")),
  );
}

/** `decided` is called after a decision. */
export function waitingNotes(decided) {
  const node = el("section", { class: "waiting-notes", "aria-label": t("inbox.notes") });
  let notes = [];

  async function load() {
    try {
      notes = (await ask("notes.waiting")).notes;
    } catch {
      notes = []; // the list below shows the error
    }
    draw();
    return notes.length;
  }

  function draw() {
    refill(
      node,
      notes.length > 0 && [
        el(
          "header",
          {},
          el("h2", {}, tn("inbox.notes.count", notes.length)),
          notes.length > 1 && button("approve.all", "inbox.approve.all", () => decide("approve", notes)),
          notes.length > 1 && button("reject.all", "inbox.reject.all", () => decide("reject", notes)),
        ),
        notes.map(card),
      ],
    );
  }

  const button = (name, label, act, kind = "quiet") =>
    el("button", { type: "button", class: kind, "data-do": name, onclick: act }, t(label));

  function card(note) {
    return el(
      "article",
      { class: "waiting-note", "data-id": note.path },
      el(
        "header",
        {},
        el("a", { class: "row", href: address("notes", note.path) }, pathName(note.path)),
        when(note.mtime),
        button("approve", "do.approve", () => decide("approve", [note]), "primary"),
        button("reject", "do.reject", () => decide("reject", [note])),
        button("edit", "do.edit.approve", () => edit(note)),
      ),
      invisibleWarning(note.path, note.text),
      el("p", { class: "said-words", tabindex: "0" }, note.text.replace(FRONT_MATTER, "").trim()),
    );
  }

  async function decide(how, some) {
    const back = [];
    try {
      for (const note of some) back.push(await (how === "approve" ? approve(note) : reject(note)));
    } catch (error) {
      announce(sentence(error));
      return finish(some);
    }
    announce(t(how === "approve" ? "inbox.approved" : "inbox.rejected"), t("do.undo"), () => undo(back));
    return finish(some);
  }

  async function undo(changes) {
    const failed = await Promise.all(changes.map((change) => ask("notes.put", change))).catch((error) => error);
    await load();
    decided();
    announce(failed instanceof Error ? sentence(failed) : t("done.undone"));
  }

  /** Show what is left. The next note has the focus. */
  async function finish(some) {
    const at = notes.findIndex((note) => note.path === some[0].path);
    await load();
    decided();
    const next = notes[Math.min(at, notes.length - 1)];
    if (next) node.querySelector(`[data-id="${CSS.escape(next.path)}"] .row`)?.focus();
  }

  function edit(note) {
    const key = `note.waiting.${note.path}`;
    const fillIn = (body, close) => {
      const text = el("textarea", { rows: "12", required: true, value: note.text, class: "note-source" });
      text.autofocus = true;
      const save = async () => {
        const made = await ask("notes.put", { path: note.path, text: text.value, version: note.version });
        const change = await approve({ ...note, text: note.text, version: made.version });
        close();
        announce(t("inbox.approved"), t("do.undo"), () => undo([change]));
        await finish([note]);
      };
      body.append(form([field(t("notes.text"), text)], t("do.approve"), save, close, { draft: { key } }));
    };
    dialog(t("do.edit.approve"), fillIn, { wide: true, draft: key });
  }

  return {
    node,
    load,
    clear: () => ((notes = []), fill(node)),
    any: () => notes.length > 0,
    key(event) {
      const path = document.activeElement?.closest(".waiting-note")?.dataset.id;
      const note = notes.find((one) => one.path === path);
      const keys = { a: () => decide("approve", [note]), r: () => decide("reject", [note]), e: () => edit(note) };
      if (!note || !keys[event.key]) return false;
      keys[event.key]();
      return true;
    },
  };
}
