// Import and export on the page: drop a file or choose one, see what it contains, import it, and undo that. Download what
// the filters show.

import { ask } from "../api.js";
import { partsOf, textsOf } from "../archive.js";
import { ask as dialog } from "../dialogs.js";
import { el, fill } from "../dom.js";
import { form } from "../forms.js";
import { number, t, tn, translated } from "../i18n.js";
import { announce, failure, loading, sentence } from "../notices.js";
import { address } from "../router.js";

const NOTE = /\.(?:md|markdown)$/i;
const PAGE_SIZE = 500;
const MAX_EXAMPLES = 20;

/** Let files be dropped anywhere on the page. `place` shows that they can. Returns a function that ends this. */
export function acceptFiles(place, done) {
  const ends = new AbortController();
  const on = (name, act) =>
    addEventListener(name, (event) => [...(event.dataTransfer?.types ?? [])].includes("Files") && act(event), ends);
  place.dataset.drop = t("import.drop");
  on("dragover", (event) => {
    event.preventDefault(); // otherwise the browser would open the file
    place.classList.add("dropping");
  });
  on("dragleave", (event) => event.relatedTarget || place.classList.remove("dropping"));
  on("drop", (event) => {
    event.preventDefault();
    place.classList.remove("dropping");
    importFiles([...event.dataTransfer.files], done);
  });
  return () => ends.abort();
}

/** Ask for files, show what they contain, and import them. */
export function importFiles(files, done) {
  dialog(
    t("import.title"),
    (body, close) => {
      const chosen = el("input", { type: "file", multiple: true, accept: ".json,.jsonl,.zip,.md,.markdown,.txt", onchange: () => look(chosen.files) });
      const label = el("label", { class: "file-choice" }, t("import.choose"), chosen);
      const found = el("div", { class: "stack" });
      const programs = el("p", { class: "hint" });
      ask("entries.importers").then((known) => fill(programs, t("import.programs", { names: known.programs.join(", ") })), () => {});
      body.append(el("p", { class: "hint" }, t("import.hint")), programs, label, found);
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
  const steps = usable.flatMap((one) => one.steps);
  const progress = el("p", { class: "hint", role: "status" });
  const run = async () => {
    const reports = [];
    let problem = "";
    try {
      for (const step of steps) {
        if (steps.length > 1) fill(progress, t("import.progress", { n: number(reports.length + 1), total: number(steps.length) }));
        reports.push(await step());
      }
    } catch (error) {
      if (reports.length === 0) throw error;
      problem = sentence(error);
    }
    close();
    report(reports, problem, done);
  };
  const nodes = plans.map((one) =>
    el("section", { class: "import-file" }, el("h3", {}, one.name), one.error ? failure(one.error, null) : one.shown),
  );
  fill(place, usable.length > 0 ? form([...nodes, progress], t("import.run"), run, close) : nodes);
}

/** What a file contains, and the steps that import it. */
async function plan(file) {
  try {
    if (NOTE.test(file.name)) return { name: file.name, ...notePlan(file.name, await file.text()) };
    const parts = (await Promise.all((await textsOf(file)).map(partsOf))).flat();
    return { name: file.name, ...(await entriesPlan(parts)) };
  } catch (error) {
    return { name: file.name, error };
  }
}

async function entriesPlan(parts) {
  const found = [];
  for (const data of parts) found.push(await ask("entries.import", { data, dryRun: true, skipInvalid: true }));
  const steps = parts.map((data) => async () => {
    const made = await ask("entries.import", { data, skipInvalid: true });
    return { ...made, undo: () => ask("entries.undo_import", { entries: made.entries, sessions: made.sessions.files }) };
  });
  const sessions = found.map((one) => one.sessions);
  const titles = sessions.flatMap((one) => one.titles);
  const texts = found.flatMap((one) => one.preview);
  const shown = [
    counts(found) && el("p", {}, counts(found)),
    examples(texts, total(found, "added"), "import.more"),
    examples(titles, total(sessions, "added"), "import.sessions.more"),
    total(found, "invalidTotal") > 0 && el("p", { class: "warning", role: "alert" }, tn("import.invalid", total(found, "invalidTotal"))),
    examples(found.flatMap((one) => one.invalid.map(translated)), total(found, "invalidTotal"), "import.more"),
  ];
  return { shown, steps };
}

function examples(texts, all, more) {
  const some = texts.slice(0, MAX_EXAMPLES);
  if (some.length === 0) return null;
  const rest = all > some.length && el("li", { class: "faint" }, t(more, { n: number(all - some.length) }));
  return el("ul", { class: "import-preview", tabindex: "0" }, some.map((text) => el("li", {}, text)), rest);
}

function notePlan(name, text) {
  const path = `memory/imported/${name.replace(/\.markdown$/i, ".md").replace(/[\\/\x00-\x1f]/g, "-")}`;
  const write = async () => {
    const { version } = await ask("notes.put", { path, text });
    return { notes: 1, undo: () => ask("notes.put", { path, version, remove: true }) };
  };
  return { shown: el("p", {}, t("import.note", { path })), steps: [write] };
}

const total = (reports, name) => reports.reduce((sum, one) => sum + (one[name] ?? 0), 0);

const withheld = ({ turns: { total: _, ...reasons } = {} }) => ({ turns: Object.values(reasons).reduce((sum, n) => sum + n, 0) });

/** A sentence for each number that is not zero: memories, conversations, turns without a prompt, notes. */
function counts(reports) {
  const sessions = reports.map((one) => one.sessions ?? {});
  const said = (key, some, name) => total(some, name) > 0 && tn(key, total(some, name));
  const parts = [
    said("import.added", reports, "added"),
    said("import.already", reports, "already"),
    said("import.refused", reports, "refused"),
    said("import.sessions", sessions, "added"),
    said("import.sessions.longer", sessions, "longer"),
    said("import.sessions.already", sessions, "already"),
    said("import.sessions.other", sessions, "other"),
    said("import.sessions.damaged", sessions, "damaged"),
    said("import.turns", sessions.map(withheld), "turns"),
    said("import.notes", reports, "notes"),
  ];
  return parts.filter(Boolean).join(" ");
}

/** A link to what was imported: the memories, or else the first conversation. */
function placeOf(reports) {
  const first = reports.flatMap((one) => one.sessions?.files ?? [])[0];
  if (total(reports, "added") > 0) return { href: address("memories"), text: t("import.show.memories") };
  return first && { href: address("notes", `sessions/${first.path}`), text: t("import.show.sessions") };
}

/** Say what was imported, and offer to undo it. */
function report(reports, problem, done) {
  const undo = async () => {
    try {
      let left = 0;
      for (const one of reports) {
        const { changed = 0, sessionsChanged = 0 } = await one.undo();
        left += changed + sessionsChanged;
      }
      announce(left > 0 ? tn("import.undone.but", left) : t("import.undone"));
    } catch (error) {
      announce(sentence(error));
    }
    done();
  };
  const text = [t(problem ? "import.partly" : "import.done"), counts(reports), problem];
  announce(text.filter(Boolean).join(" "), t("do.undo"), undo, placeOf(reports));
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
