// The tree of notes, and links from one note to another.

import { el, icon } from "../dom.js";
import { dayName, monthName, number, t } from "../i18n.js";
import { dateField, pathName, when } from "../parts.js";
import { address } from "../router.js";

const OPEN_UP_TO = 60; // larger folders start closed
const MONTHS_FROM = 13; // more dated files than this many are grouped by month
const DAY = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)/;

const toggled = new Map(); // folder → whether the reader has opened or closed it

/** Nested lists. The folders of the open note are open, and days are sorted newest first. */
export function asTree(files, chosen, allOpen) {
  const root = newFolder("");
  for (const file of files) {
    const parts = file.path.split("/");
    const name = parts.pop();
    let folder = root;
    folder.count++;
    for (const part of parts) {
      folder = inside(folder, part, `${folder.path}${part}/`);
      folder.count++;
    }
    folder.files.push({ ...file, name, day: dayOf(file, name) });
  }
  return branch(root, { chosen, allOpen });
}

function newFolder(path) {
  return { path, folders: new Map(), files: [], count: 0 };
}

function inside(folder, name, path) {
  if (!folder.folders.has(name)) folder.folders.set(name, newFolder(path));
  return folder.folders.get(name);
}

/** The day of a daily note or a conversation, such as 2026-02-08. */
function dayOf(file, name) {
  if (file.source === "sessions") return file.date ?? dateField(file.mtime);
  return DAY.exec(name)?.[0] ?? "";
}

function branch(folder, look) {
  const byName = (a, b) => a.localeCompare(b, undefined, { numeric: true });
  const folders = [...folder.folders].sort(([a], [b]) => byName(a, b));
  const plain = folder.files.filter((file) => !file.day).sort((a, b) => byName(a.name, b.name));
  const dated = folder.files.filter((file) => file.day).sort((a, b) => byName(b.day, a.day) || b.mtime - a.mtime);
  const leaf = (file) => el("li", {}, fileLink(file, look.chosen));
  return el(
    "ul",
    {},
    folder.path === "" && plain.map(leaf), // MEMORY.md comes first
    folders.map(([name, inner]) => el("li", {}, folderNode(name || "/", inner, look))),
    folder.path !== "" && plain.map(leaf),
    dated.length < MONTHS_FROM ? dated.map(leaf) : months(folder, dated, look),
  );
}

// Days by month, newest first. The newest month is open.
function months(folder, dated, look) {
  const groups = new Map();
  for (const file of dated) {
    const month = file.day.slice(0, 7);
    if (!groups.has(month)) groups.set(month, { ...newFolder(`${folder.path}${month}`), isMonth: true });
    const group = groups.get(month);
    group.count = group.files.push(file);
    group.isNewest = groups.size === 1;
  }
  return [...groups].map(([month, group]) => el("li", {}, folderNode(monthName(month), group, look)));
}

// A closed folder is filled when it is opened, so that ten thousand notes stay fast.
function folderNode(name, folder, look) {
  const node = el(
    "details",
    {},
    el(
      "summary",
      { class: "row", onclick: () => toggled.set(folder.path, !node.open) },
      icon("folder"),
      el("span", {}, name),
      el("span", { class: "faint" }, number(folder.count)),
    ),
  );
  let isFilled = false;
  const grow = () => {
    if (node.open && !isFilled)
      node.append(
        folder.isMonth
          ? el("ul", {}, folder.files.map((file) => el("li", {}, fileLink(file, look.chosen))))
          : branch(folder, look),
      );
    isFilled ||= node.open;
  };
  node.addEventListener("toggle", grow);
  node.open = look.allOpen || holds(folder, look.chosen) || (toggled.get(folder.path) ?? startsOpen(folder));
  grow();
  return node;
}

function holds(folder, chosen) {
  return folder.isMonth ? folder.files.some((file) => file.path === chosen) : chosen.startsWith(folder.path);
}

function startsOpen(folder) {
  if (folder.isMonth) return folder.isNewest;
  const isTop = folder.path.indexOf("/") === folder.path.length - 1;
  const days = folder.files.filter((file) => file.day).length;
  const rows = folder.folders.size + folder.files.length - (days < MONTHS_FROM ? 0 : days);
  return folder.count <= OPEN_UP_TO || (isTop && rows <= OPEN_UP_TO);
}

function fileLink(file, chosen) {
  const isConversation = file.source === "sessions";
  return el(
    "a",
    {
      class: "row",
      href: address("notes", file.path),
      "aria-current": file.path === chosen ? "page" : null,
      title: file.path,
    },
    icon(isConversation ? "talk" : "notes"),
    isConversation && file.title
      ? el("span", { class: "talk" }, el("b", {}, file.title), el("small", {}, dayName(file.day)))
      : el("span", {}, file.name),
    (["relayed", "untrusted"].includes(file.trust) || (file.trust === "agent" && !isConversation)) && // there it is the rule
      el(
        "span",
        { class: "mini", "data-name": file.trust, title: t(`trust.${file.trust}.why`) },
        t(`trust.${file.trust}`),
      ),
  );
}

/** Scroll the tree, and not the page, until the open note is visible. */
export function reveal(tree) {
  const open = tree.querySelector("[aria-current]");
  if (!open || tree.scrollHeight <= tree.clientHeight) return;
  const [outer, inner] = [tree.getBoundingClientRect(), open.getBoundingClientRect()];
  if (inner.top >= outer.top && inner.bottom <= outer.bottom) return;
  tree.scrollTop += inner.top - outer.top - (tree.clientHeight - inner.height) / 2;
}

const MAX_LATEST = 12;

/** Recently changed notes, shown until a note is chosen. */
export function lastChanged(files) {
  const notes = files.filter((file) => file.source === "memory");
  const latest = (notes.length ? notes : [...files]).sort((a, b) => b.mtime - a.mtime).slice(0, MAX_LATEST);
  return el(
    "section",
    { class: "recent" },
    el("h2", {}, t("notes.latest")),
    el(
      "div",
      { class: "lines" },
      latest.map((file) =>
        el(
          "a",
          { class: "entry-line row", href: address("notes", file.path) },
          el("span", { class: "entry-text" }, pathName(file.path)),
          el("span", { class: "entry-facts" }, when(file.mtime)),
        ),
      ),
    ),
  );
}

/** The address of the note that a relative link names; null if it does not exist. */
export function resolved(from, target, known) {
  let name;
  try {
    name = decodeURIComponent(target.split("#")[0].split("?")[0]);
  } catch {
    return null;
  }
  if (!name || /^[a-z][a-z0-9+.-]*:/i.test(name)) return null;
  const parts = name.startsWith("/") ? [] : from.split("/").slice(0, -1);
  for (const part of name.split("/")) {
    if (part === "..") parts.pop();
    else if (part && part !== ".") parts.push(part);
  }
  const path = parts.join("/");
  return known.has(path) ? address("notes", path) : null;
}
