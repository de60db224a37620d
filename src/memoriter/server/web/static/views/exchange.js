// Import and export on the page: drop a file or choose one, see what it contains, import it, and undo that. Download what
// the filters show.

import { ask } from "../api.js";
import { ask as dialog } from "../dialogs.js";
import { el, fill } from "../dom.js";
import { form } from "../forms.js";
import { number, t, tn } from "../i18n.js";
import { announce, failure, loading, sentence } from "../notices.js";

const NOTE = /\.(?:md|markdown)$/i;
const PAGE_SIZE = 500;

/** Let files be dropped anywhere on an element. */
export function acceptFiles(place, done) {
  const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  place.addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    place.classList.add("dropping");
  });
  place.addEventListener("dragleave", (event) => place.contains(event.relatedTarget) || place.classList.remove("dropping"));
  place.addEventListener("drop", (event) => {
    place.classList.remove("dropping");
    if (!holdsFiles(event)) return;
    event.preventDefault();
    importFiles([...event.dataTransfer.files], done);
  });
}

/** Ask for files, show what they contain, and import them. */
export function importFiles(files, done) {
  dialog(
    t("import.title"),
    (body, close) => {
      const chosen = el("input", { type: "file", multiple: true, accept: ".json,.jsonl,.md,.markdown,.txt", onchange: () => look(chosen.files) });
      const label = el("label", { class: "file-choice" }, t("import.choose"), chosen);
      const found = el("div", { class: "stack" });
      body.append(el("p", { class: "hint" }, t("import.hint")), label, found);
      const look = (some) => preview([...some], found, close, done);
      if (files.length > 0) look(files);
    },
    { wide: true },
  );
}

async function preview(files, place, close, done) {
  if (files.length === 0) return;
  fill(place, loading());
  const plans = await Promise.all(files.map(plan));
  const usable = plans.filter((one) => !one.error);
  const run = async () => {
    const reports = [];
    for (const one of usable) reports.push(await one.run());
    close();
    report(reports, done);
  };
  const nodes = plans.map((one) =>
    el("section", { class: "import-file" }, el("h3", {}, one.name), one.error ? failure(one.error, null) : one.shown),
  );
  fill(place, usable.length > 0 ? form(nodes, t("import.run"), run, close) : nodes);
}

/** What a file contains, and how to import it. */
async function plan(file) {
  try {
    const text = await file.text();
    return { name: file.name, ...(NOTE.test(file.name) ? notePlan(file.name, text) : await entriesPlan(text)) };
  } catch (error) {
    return { name: file.name, error };
  }
}

async function entriesPlan(data) {
  const would = await ask("entries.import", { data, dryRun: true });
  const run = async () => {
    const made = await ask("entries.import", { data });
    return { ...made, undo: () => ask("entries.undo_import", { entries: made.entries }) };
  };
  const texts = would.preview.map((text) => el("li", {}, text));
  const more = would.added - would.preview.length;
  const shown = [
    el("p", {}, counts(would)),
    texts.length > 0 && el("ul", { class: "import-preview", tabindex: "0" }, texts, more > 0 && el("li", { class: "faint" }, t("import.more", { n: number(more) }))),
  ];
  return { shown, run };
}

function notePlan(name, text) {
  const path = `memory/imported/${name.replace(/\.markdown$/i, ".md").replace(/[\\/\x00-\x1f]/g, "-")}`;
  const run = async () => {
    const { version } = await ask("notes.put", { path, text });
    return { notes: 1, undo: () => ask("notes.put", { path, version, remove: true }) };
  };
  return { shown: el("p", {}, t("import.note", { path })), run };
}

const counts = ({ added, already, refused }) =>
  [tn("import.added", added), already > 0 && tn("import.already", already), refused > 0 && tn("import.refused", refused)]
    .filter(Boolean)
    .join(" ");

/** Say what was imported, and offer to undo it. */
function report(reports, done) {
  const sum = (name) => reports.reduce((total, one) => total + (one[name] ?? 0), 0);
  const total = { added: sum("added"), already: sum("already"), refused: sum("refused") };
  const notes = sum("notes");
  const parts = [(total.added || total.already || total.refused || !notes) && counts(total), notes > 0 && tn("import.notes", notes)];
  const undo = async () => {
    try {
      let left = 0;
      for (const one of reports) left += (await one.undo()).changed ?? 0;
      announce(left > 0 ? tn("import.undone.but", left) : t("import.undone"));
    } catch (error) {
      announce(sentence(error));
    }
    done();
  };
  announce([t("import.done"), ...parts.filter(Boolean)].join(" "), t("do.undo"), undo);
  done();
}

/** Download the memories that match, with their history, as a file that can be imported again. */
export async function download(filters, ids = null) {
  try {
    const { query, sort, ascending, ...given } = filters;
    const only = ids ?? (query ? await idsOf(filters) : null);
    const { data, truncated, total } = await ask("entries.export", { ...given, ...(only && { ids: only }) });
    const link = el("a", { download: `memoriter-${new Date().toISOString().slice(0, 10)}.jsonl` });
    link.href = URL.createObjectURL(new Blob([data], { type: "application/x-ndjson" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    announce(truncated ? t("export.truncated", { n: number(total) }) : tn("export.done", total));
  } catch (error) {
    announce(sentence(error));
  }
}

async function idsOf(filters) {
  const found = [];
  let cursor = null;
  do {
    const page = await ask("entries.list", { ...filters, limit: PAGE_SIZE, ...(cursor && { cursor }) });
    found.push(...page.entries.map((entry) => entry.id));
    cursor = page.cursor;
  } while (cursor);
  return found;
}
