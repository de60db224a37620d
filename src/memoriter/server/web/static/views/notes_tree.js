// The tree of notes, and links from one note to another.

import { el, icon } from "../dom.js";
import { number, t } from "../i18n.js";
import { pathName, when } from "../parts.js";
import { address } from "../router.js";

const OPEN_UP_TO = 60; // larger folders start closed

/** Nested lists. The folders of the open note are open. */
export function asTree(files, chosen, allOpen) {
  const root = { folders: new Map(), files: [], count: 0 };
  for (const file of files) {
    const parts = file.path.split("/");
    const name = parts.pop();
    let folder = root;
    folder.count++;
    for (const part of parts) {
      if (!folder.folders.has(part)) folder.folders.set(part, { folders: new Map(), files: [], count: 0 });
      folder = folder.folders.get(part);
      folder.count++;
    }
    folder.files.push({ ...file, name });
  }
  return branch(root, "", chosen, allOpen);
}

function branch(folder, path, chosen, allOpen) {
  const byName = (a, b) => a.localeCompare(b, undefined, { numeric: true });
  const folders = [...folder.folders].sort(([a], [b]) => byName(a, b));
  const files = folder.files.sort((a, b) => byName(a.name, b.name));
  return el(
    "ul",
    {},
    path === "" && files.map((file) => el("li", {}, fileLink(file, chosen))), // MEMORY.md comes first
    folders.map(([name, inner]) =>
      el("li", {}, folderNode(name, inner, path ? `${path}/${name}` : name, chosen, allOpen)),
    ),
    path !== "" && files.map((file) => el("li", {}, fileLink(file, chosen))),
  );
}

// A closed folder is filled when it is opened, so that ten thousand notes stay fast.
function folderNode(name, folder, path, chosen, allOpen) {
  const node = el(
    "details",
    {},
    el(
      "summary",
      { class: "row" },
      icon("folder"),
      el("span", {}, name || "/"),
      el("span", { class: "faint" }, number(folder.count)),
    ),
  );
  let made = false;
  const grow = () => {
    if (node.open && !made) node.append(branch(folder, path, chosen, allOpen));
    made ||= node.open;
  };
  node.addEventListener("toggle", grow);
  node.open = allOpen || chosen.startsWith(`${path}/`) || folder.count <= OPEN_UP_TO;
  grow();
  return node;
}

function fileLink(file, chosen) {
  return el(
    "a",
    {
      class: "row",
      href: address("notes", file.path),
      "aria-current": file.path === chosen ? "page" : null,
      title: file.path,
    },
    icon("notes"),
    el("span", {}, file.name),
    (file.trust === "untrusted" || (file.trust === "agent" && file.source !== "sessions")) && // there it is the rule
      el(
        "span",
        { class: "mini", "data-name": file.trust, title: t(`trust.${file.trust}.why`) },
        t(`trust.${file.trust}`),
      ),
  );
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
export function resolved(from, target, files) {
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
  return files.some((file) => file.path === path) ? address("notes", path) : null;
}
