// Decisions about notes of agents that wait for approval. To reject a note removes it; every decision can be undone.

import { ask } from "../api.js";
import { el } from "../dom.js";
import { t } from "../i18n.js";
import { announce, sentence } from "../notices.js";

export const FRONT_MATTER = /^---\n[\s\S]*?\n---\n+/;

/** Approve or reject a note. Returns a function that undoes it. */
export async function decideNote(how, note) {
  if (how === "approve") {
    const { approved } = await ask("notes.approve", { paths: [note.path] });
    return () => ask("notes.put", { path: note.path, text: note.text, version: approved[0].version });
  }
  const { id } = await ask("notes.remove", { path: note.path, version: note.version });
  return () => ask("notes.restore", { id });
}

/** A note on its own page that waits for approval: a sentence and the decision. Null for every other note. `done` is
 *  called afterwards, with the path, or empty if the note is gone. */
export function waitingBanner(text, path, done) {
  if (!/^approval: "?pending"?$/m.test(FRONT_MATTER.exec(text)?.[0] ?? "")) return null;
  const decide = (how) => async () => {
    try {
      const undo = await decideNote(how, await ask("notes.text", { path }));
      const back = () => undo().then(() => done(path), (error) => announce(sentence(error)));
      announce(t(`inbox.${how}.note`, { name: path }), t("do.undo"), back);
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
