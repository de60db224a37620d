// Notes: the workspace as a tree, and a note as rendered text, as source or as chunks.

import { ask, isAborted, news, newest } from "../api.js";
import { el, enter, fill, focusIn, icon, refill, typed } from "../dom.js";
import { bytes, number, t, tn } from "../i18n.js";
import { step } from "../keys.js";
import { renderedBlocks } from "../markdown.js";
import { failure, loading, nothing } from "../notices.js";
import { invisibleWarning, pathName, segments, trust, when } from "../parts.js";
import { address, amend } from "../router.js";
import { appendInSteps } from "../steps.js";
import { waitingBanner } from "./waiting.js";
import { hasDraft, moveNote, newNote, noteEditor, removeNote, removeSession, tickTask } from "./notes_edit.js";
import { asTree, lastChanged, resolved, reveal } from "./notes_tree.js";
import { chunkList, outline, sourceLines, turns } from "./notes_text.js";

const LINES_PER_REQUEST = 1500; // lines per request
const LINES_BEFORE = 200; // lines above the requested ones

export function notesView(main) {
  const readNote = newest();
  const readOn = newest(); // separate, so that a refresh does not cancel loading more lines
  const isNew = news();
  const isNewTree = news();
  let files = null;
  let known = new Set(); // the paths of all files
  let path = "";
  let lit = null; // the lines in the address
  let form = "read";
  let text = null;
  let drawings = 0; // a newer drawing ends the one before
  let editor = null; // the editor of the open note
  let reading = 0; // requests for the text that are not answered yet
  let opening = false; // until the text is drawn; a live event may repeat the request
  let redraw = false; // the list of notes changed while the text was loading

  const filter = el("input", {
    type: "search",
    placeholder: t("notes.filter"),
    "aria-label": t("notes.filter"),
    autocomplete: "off",
    ...typed(() => drawTree()),
  });
  const tree = el("nav", { class: "tree", "aria-label": t("notes.tree") });
  const page = el("div", { class: "note", tabindex: "-1" });
  const split = el("div", { class: "split notes" }, el("div", { class: "split-list" }, filter, tree), page);
  const folder = () => (path.includes("/") && !path.endsWith(".jsonl") ? path.slice(0, path.lastIndexOf("/") + 1) : "memory/");
  fill(
    main,
    el(
      "header",
      { class: "view-head" },
      el("h1", {}, t("view.notes")),
      el("button", { type: "button", class: "primary", onclick: () => newNote(folder(), written) }, t("notes.new")),
    ),
    split,
  );

  // After a change, `now` is the note to show; empty if it no longer exists. Resolves when the page shows the change.
  function written(now = path) {
    editor = null;
    loadTree();
    if (now === path) return load({ quiet: true, changed: true });
    location.hash = address("notes", now);
    return null;
  }

  async function edit() {
    try {
      const note = await ask("notes.text", { path });
      if (note.path !== path) return;
      editor = noteEditor(note, { resolve: (target) => resolved(path, target, known), done: () => written() });
      draw({ scroll: false });
      editor.focus();
    } catch (error) {
      page.prepend(failure(error, null));
    }
  }

  const buttons = () => {
    if (editor || path.startsWith("entries/")) return null;
    const isSession = path.endsWith(".jsonl");
    const button = (name, label, act, kind = "quiet") =>
      el("button", { type: "button", class: kind, "data-do": name, onclick: act }, t(label));
    return el(
      "div",
      { class: "note-actions" },
      !isSession && button("edit", hasDraft(path) ? "notes.edit.draft" : "notes.edit", edit),
      !isSession && button("move", "notes.move", () => moveNote(path, written)),
      button("remove", "notes.remove", () => (isSession ? removeSession : removeNote)(path, written), "quiet danger-text"),
    );
  };

  async function loadTree() {
    if (!files) fill(tree, loading());
    try {
      files = await ask("notes.tree");
      known = new Set(files.files.map((file) => file.path));
      if (!isNewTree(files)) return;
      drawTree();
      if (!path) load();
      else if (reading > 0) redraw = true; // the text on the page may be old
      else if (text && !editor) draw({ scroll: false }); // links to other notes need the list
    } catch (error) {
      if (isAborted(error)) return;
      isNewTree.forget();
      fill(tree, failure(error, loadTree));
    }
  }

  function drawTree() {
    if (!files) return;
    const wanted = filter.value.trim().toLowerCase();
    const shown = files.files.filter((file) => `${file.path} ${file.title}`.toLowerCase().includes(wanted));
    const top = tree.scrollTop;
    refill(
      tree,
      shown.length
        ? asTree(shown, path, Boolean(wanted))
        : files.files.length
          ? nothing(t("notes.none.filtered"))
          : nothing(t("notes.none"), el("p", { class: "faint" }, t("notes.none.how"))),
      files.truncated &&
        el(
          "p",
          { class: "faint" },
          t("notes.truncated", { n: number(files.files.length), total: number(files.total) }),
        ),
    );
    tree.scrollTop = top;
    reveal(tree);
  }

  async function load({ quiet = false, changed = false } = {}) {
    if (!path) {
      if (files) refill(page, files.files.length ? lastChanged(files.files) : null);
      return;
    }
    opening ||= !quiet;
    if (!quiet) (readOn.stop(), fill(page, loading()));
    reading++;
    try {
      const from = lit && lit[0] > LINES_PER_REQUEST - LINES_BEFORE ? lit[0] - LINES_BEFORE : 1;
      const answer = await readNote("notes.get", { path, from, lines: LINES_PER_REQUEST });
      const known = !isNew(answer) && !opening && !changed; // lines that were loaded since stay
      if (known && !redraw) return;
      redraw = false;
      text = known ? text : answer;
      const opened = opening;
      opening = false;
      if (editor) return; // what is being written stays; saving notices the change
      await draw({ scroll: opened });
      if (opened) enter(page);
    } catch (error) {
      if (isAborted(error)) return;
      opening = false;
      isNew.forget();
      fill(
        page,
        failure(error, () => load()),
      );
    } finally {
      reading--;
    }
  }

  async function more() {
    const before = text;
    try {
      const next = await readOn("notes.get", { path, from: before.nextFrom, lines: LINES_PER_REQUEST });
      if (text !== before) return; // the note has changed and is shown from the start
      text = { ...next, text: `${before.text}\n${next.text}`, from: before.from };
      page.querySelector(".rest")?.replaceWith(rest());
      const body = page.querySelector(".note-body");
      const last = body.querySelector(".prose")?.lastElementChild; // it may continue
      last?.remove();
      await write(body, last ? Number(last.dataset.from) : next.from);
    } catch (error) {
      if (!isAborted(error)) page.append(failure(error, more));
    }
  }

  /** A button for the lines that are not shown yet. Paper says which lines it has. */
  function rest() {
    if (!text.nextFrom) return el("div", { class: "rest" });
    const shown = { from: number(text.from), to: number(text.nextFrom - 1), total: number(text.totalLines) };
    return el(
      "div",
      { class: "rest" },
      el("button", { type: "button", class: "quiet more", onclick: more }, t("do.more")),
      el("p", { class: "on-paper" }, t("print.lines", shown)),
    );
  }

  async function draw({ scroll }) {
    const about = files?.files.find((file) => file.path === path);
    const forms = [
      ["read", t("notes.read")],
      ["source", t("notes.source")],
      ["chunks", t("notes.chunks")],
    ];
    const body = el("div", { class: "note-body" });
    const focus = focusIn(page);
    const height = scroll ? 0 : (page.querySelector(".note-body")?.offsetHeight ?? 0);
    drawings++;
    refill(
      page,
      el(
        "header",
        { class: "note-head" },
        el("a", { class: "plain back", href: address("notes"), "aria-label": t("do.back") }, icon("back")),
        el("h2", { title: path }, pathName(path)),
        !editor &&
          segments(t("notes.form"), forms, form, (key) => {
            form = key;
            draw({ scroll: true });
          }),
        buttons(),
        el(
          "p",
          { class: "faint" },
          t(`source.${text.source ?? "memory"}`),
          " · ",
          tn("count.lines", text.totalLines),
          about && [" · ", bytes(about.size), " · ", tn("count.chunks", about.chunks)],
          " · ",
          when(text.mtime),
          " ",
          text.trust && text.trust !== "owner" && trust(text.trust),
        ),
        invisibleWarning(path, text.text),
        !editor && text.from === 1 && waitingBanner(text.text, path, written),
      ),
      body,
      !editor && form !== "chunks" && rest(),
    );
    if (editor) return fill(body, editor.node);
    if (form === "chunks") await drawChunks(body);
    else if (!(await write(body, text.from, height))) return null;
    if (document.activeElement === document.body) focus()?.focus({ preventScroll: true });
    return light(body, scroll);
  }

  // Write the lines from a number on, in steps. Returns whether it came to the end.
  async function write(body, from, height = 0) {
    const mine = ++drawings;
    const lines = from === text.from ? text.text : text.text.split("\n").slice(from - text.from).join("\n");
    const isProse = form === "read" && !path.endsWith(".jsonl");
    if (!body.firstElementChild) fill(body, columns(isProse ? el("div", { class: "prose" }) : el("ol", { class: form === "read" ? "turns" : "source-lines" })));
    const place = body.querySelector(".prose, ol");
    place.style.minHeight = `${height}px`; // what was drawn before keeps its place
    const nodes = isProse ? renderedBlocks(lines, markdown(from)) : (form === "read" ? turns : sourceLines)(lines, from);
    const isComplete = await appendInSteps(place, nodes, () => mine === drawings);
    if (!isComplete) return false;
    place.style.minHeight = "";
    if (form === "read") fill(place.nextElementSibling, outline(place));
    return true;
  }

  const columns = (place) => el("div", { class: "note-columns" }, place, el("div", { class: "beside-prose" }));

  const markdown = (first) => ({
    first,
    resolve: (target) => resolved(path, target, known),
    tick: (line) => tickTask(path, line, () => written()),
  });

  async function drawChunks(body) {
    fill(body, loading());
    try {
      const found = await ask("notes.chunks", { path });
      fill(body, found.chunks.length ? chunkList(found.chunks, text) : nothing(t("notes.chunks.none")));
    } catch (error) {
      fill(
        body,
        failure(error, () => drawChunks(body)),
      );
    }
  }

  // Highlight the innermost blocks that contain the lines, and scroll to the first.
  function light(body, scroll) {
    if (!lit) return scroll && page.getBoundingClientRect().top < 0 && page.scrollIntoView();
    const [first, last] = lit;
    const touched = [...body.querySelectorAll("[data-from]")].filter(
      (node) => Number(node.dataset.from) <= last && Number(node.dataset.to) >= first,
    );
    const innermost = touched.filter(
      (node) => !touched.some((other) => other !== node && node.contains(other)),
    );
    for (const node of innermost) node.classList.add("lit");
    if (scroll) innermost[0]?.scrollIntoView({ block: "center" });
  }

  return {
    async show(route) {
      const from = Number(route.params.get("from")) || 0;
      const to = Number(route.params.get("to")) || from;
      const moved = route.id !== path;
      if (moved) editor = null;
      path = route.id;
      lit = from > 0 ? [from, Math.max(from, to)] : null;
      split.classList.toggle("with-panel", Boolean(path));
      if (moved) form = "read";
      drawTree();
      await Promise.all([files ? null : loadTree(), load()]);
    },
    refresh(events) {
      if (!["notes", "sync"].some((kind) => events.has(kind))) return;
      loadTree();
      if (path) load({ quiet: true });
    },
    focusSearch: () => (filter.focus(), filter.select(), true),
    key(event) {
      if (event.key !== "e" || !page.querySelector("[data-do=edit]")) return step(tree, ".row", event);
      edit();
      return true;
    },
    escape() {
      if (editor) return (written(), true); // what was typed is kept as a draft
      if (lit) {
        lit = null;
        amend("notes", path);
        for (const node of page.querySelectorAll(".lit")) node.classList.remove("lit");
        return true;
      }
      if (!path) return false;
      location.hash = address("notes");
      return true;
    },
    close: () => (readNote.stop(), readOn.stop()),
  };
}
