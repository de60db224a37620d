// Writing notes: edit with a preview, create, rename or move, remove with undo, and tick a task. Every change names the
// version that was read, so that it never overwrites what an editor or an agent wrote in the meantime.

import { ask } from "../api.js";
import { ask as dialog } from "../dialogs.js";
import { draftOf, dropDraft, keepDraft } from "../drafts.js";
import { el, fill } from "../dom.js";
import { form } from "../forms.js";
import { ago, t, tn } from "../i18n.js";
import { rendered } from "../markdown.js";
import { announce, failure, loading, sentence } from "../notices.js";
import { field, segments } from "../parts.js";
import { address } from "../router.js";
import { conflict, isConflict } from "./conflict.js";

const keyOf = (path) => `note.${path}`;

/** Return whether a note has a draft. */
export const hasDraft = (path) => draftOf(keyOf(path)) !== null;

/** An editor for a note. `resolve` maps relative links for the preview; `done` runs after saving or closing. */
export function noteEditor(note, { resolve, done }) {
  const key = keyOf(note.path);
  const kept = draftOf(key);
  let base = kept?.base ?? { text: note.text, version: note.version };
  let shown = "write";
  const text = el("textarea", {
    class: "note-source",
    "aria-label": t("notes.source"),
    spellcheck: "true",
    value: kept?.values ?? base.text,
    oninput: () => (isChanged() ? keepDraft(key, text.value, base) : dropDraft(key)),
  });
  const preview = el("div", { class: "prose note-preview", tabindex: "0", "aria-label": t("notes.preview") });
  const wrong = el("p", { class: "wrong", role: "alert" });
  const place = el("div");
  const bar = el("div", { class: "note-bar" });
  const isChanged = () => normal(text.value) !== normal(base.text);
  const save = el("button", { type: "button", class: "primary", onclick: () => put(base.version) }, t("do.save"));
  const node = el(
    "div",
    {
      class: "note-editor",
      onkeydown: (event) => {
        if (!(event.ctrlKey || event.metaKey) || !["s", "Enter"].includes(event.key)) return;
        event.preventDefault();
        put(base.version);
      },
    },
    bar,
    kept && el("p", { class: "hint draft", role: "status" }, t("draft.restored", { ago: ago(kept.at) })),
    place,
    el("div", { class: "note-panes", "data-shown": shown }, text, preview),
  );

  function drawBar() {
    const forms = [
      ["write", t("notes.write")],
      ["preview", t("notes.preview")],
    ];
    const discard = () => (dropDraft(key), done());
    fill(
      bar,
      segments(t("notes.form"), forms, shown, (name) => {
        shown = name;
        node.querySelector(".note-panes").dataset.shown = name;
        if (name === "preview") fill(preview, rendered(text.value, { resolve }));
        drawBar();
        bar.querySelector(`[data-value="${name}"]`).focus();
      }),
      wrong,
      el("button", { type: "button", class: "quiet", onclick: discard }, t("draft.discard")),
      save,
    );
  }

  async function put(version) {
    save.disabled = true;
    fill(wrong);
    try {
      const before = base;
      const made = await ask("notes.put", { path: note.path, text: withEnds(text.value, base.text), version });
      dropDraft(key);
      const back = () =>
        before.version && act({ path: note.path, text: before.text, version: made.version }, done, t("done.undone"));
      announce(t("notes.saved"), t("do.undo"), back);
      done();
    } catch (error) {
      if (isConflict(error)) await settle();
      else fill(wrong, sentence(error));
    } finally {
      save.disabled = false;
    }
  }

  async function settle() {
    const theirs = await ask("notes.text", { path: note.path });
    const resume = (now, words) => {
      base = { text: theirs.text, version: theirs.version };
      text.value = words;
      keepDraft(key, text.value, base);
      fill(place);
      text.focus();
    };
    const choose = {
      theirs: () => (dropDraft(key), done()),
      mine: () => put(theirs.version),
      both: () => resume(theirs, `${theirs.text}\n${text.value}`),
    };
    fill(place, conflict(base.text, theirs.text, text.value, choose));
    place.scrollIntoView({ block: "nearest" });
  }

  drawBar();
  return { node, focus: () => text.focus() };
}

// A text area shows every line end as a line feed. A note keeps the ends that it had.
const normal = (text) => text.replaceAll("\r\n", "\n");
const withEnds = (text, before) => (before.includes("\r\n") ? normal(text).replaceAll("\n", "\r\n") : text);

/** Ask for a path and create a note. */
export function newNote(folder, done) {
  const draft = { key: "note.new" };
  const fillIn = (body, close) => {
    const path = el("input", { type: "text", required: true, autocomplete: "off", value: `${folder}${t("notes.new.name")}.md` });
    const text = el("textarea", { rows: "8", value: "# \n" });
    const create = async () => {
      const made = await ask("notes.put", { path: path.value.trim(), text: text.value });
      close();
      announce(t("notes.created"), t("do.undo"), () => act({ path: made.path, version: made.version, remove: true }, () => done(""), t("done.undone")));
      done(made.path);
    };
    path.autofocus = true;
    const nodes = [field(t("notes.path"), path, t("notes.path.hint")), field(t("notes.text"), text)];
    body.append(form(nodes, t("notes.create"), create, close, { draft }));
  };
  dialog(t("notes.new"), fillIn, { wide: true, draft: draft.key });
}

/** Ask for a new path and move the note there. */
export function moveNote(path, done) {
  dialog(t("notes.move"), (body, close) => {
    const to = el("input", { type: "text", required: true, autocomplete: "off", value: path });
    to.autofocus = true;
    const move = async () => {
      const { version } = await ask("notes.text", { path });
      const made = await ask("notes.put", { path, to: to.value.trim(), version });
      close();
      announce(t("notes.moved"), t("do.undo"), () => act({ path: made.path, to: path, version }, () => done(path), t("done.undone")));
      done(made.path);
    };
    body.append(form([field(t("notes.path"), to, t("notes.path.hint"))], t("notes.move"), move, close));
  });
}

/** Remove a note, and offer to restore it. */
export async function removeNote(path, done) {
  try {
    const { version } = await ask("notes.text", { path });
    offerRestore(await ask("notes.remove", { path, version }), done);
  } catch (error) {
    announce(sentence(error));
  }
}

function offerRestore({ id, path }, done) {
  announce(t("notes.removed", { path }), t("do.undo"), () => act({ id }, () => done(path), t("notes.restored"), "notes.restore"));
  done("");
}

/** Say what would be deleted with a session and what stays, delete it, and show the receipt. */
export function removeSession(path, done) {
  dialog(t("notes.remove.session"), async (body, close) => {
    fill(body, loading());
    try {
      const found = await ask("notes.remove", { path, dryRun: true });
      const run = async () => {
        const made = await ask("notes.remove", { path });
        body.closest("dialog").addEventListener("close", () => offerRestore(made, done));
        const closing = el("button", { type: "button", class: "primary", onclick: close }, t("do.close"));
        fill(body, el("div", { class: "stack receipt" }, removal("notes.removed", made), el("div", { class: "dialog-actions" }, closing)));
        closing.focus();
      };
      fill(body, form(removal("notes.remove.what", found), t("notes.remove"), run, close, { danger: true }));
      body.querySelector("[type=submit]").focus();
    } catch (error) {
      fill(body, failure(error, null));
    }
  });
}

/** What is deleted, and what is kept of the session. */
function removal(title, { path, lines, session, learned, recalls }) {
  const kept = (key, count, view) => count > 0 && el("li", {}, el("a", { href: address(view, "", { session }) }, tn(key, count)));
  return [
    el("p", { class: "lead" }, t(title, { path })),
    el("p", {}, tn("count.lines", lines), " · ", t("notes.removed.hint")),
    learned + recalls > 0 && [el("h3", {}, t("notes.removed.stays")), el("ul", {}, kept("notes.learned", learned, "memories"), kept("notes.recalls", recalls, "recalls"))],
  ];
}

const TASK = /^(\s*(?:[-*+]|\d{1,9}[.)])\s+\[)([ xX])(\]\s)/;

/** Tick or untick the task in a line. */
export async function tickTask(path, line, done) {
  try {
    const note = await ask("notes.text", { path });
    const lines = note.text.split("\n");
    const found = TASK.exec(lines[line - 1] ?? "");
    if (!found) return await done();
    lines[line - 1] = lines[line - 1].replace(TASK, (_, before, box, after) => `${before}${box === " " ? "x" : " "}${after}`);
    const made = await ask("notes.put", { path, text: lines.join("\n"), version: note.version });
    const back = () => act({ path, text: note.text, version: made.version }, done, t("done.undone"));
    await done(); // the page shows the change before it says so
    announce(t(found[2] === " " ? "notes.ticked" : "notes.unticked"), t("do.undo"), back);
  } catch (error) {
    await done();
    announce(sentence(error));
  }
}

async function act(change, done, text, operation = "notes.put") {
  const failed = await ask(operation, change).catch((error) => error);
  await done();
  announce(failed instanceof Error ? sentence(failed) : text);
}
