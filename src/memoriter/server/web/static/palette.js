// The palette (Ctrl+K): go to a view, a note, a memory or a saved search, search, or run an action.

import { isAborted, newest } from "./api.js";
import { ask as dialog } from "./dialogs.js";
import { el, fill, typed } from "./dom.js";
import { t } from "./i18n.js";
import { announce } from "./notices.js";
import { remember, remembered } from "./prefs.js";
import { VIEWS, address, here } from "./router.js";

const MAX_SHOWN = 12;
const PAUSE_MS = 120;

/** Open the palette. `actions()` returns the actions `{ text, run }` that are possible here. */
export function palette(actions) {
  if (document.querySelector("dialog[open]")) return;
  const find = newest();
  let items = [];
  let at = 0;
  let timer = 0;
  let close = () => {};
  const list = el("ul", { id: "palette-list", class: "palette-list", role: "listbox", "aria-label": t("palette.title") });
  const input = el("input", {
    type: "text",
    class: "palette-input",
    role: "combobox",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": t("palette.title"),
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    placeholder: t("palette.placeholder"),
    ...typed(() => change()),
    onkeydown: (event) => {
      if (event.isComposing) return;
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) (event.preventDefault(), choose((at + by + items.length) % Math.max(1, items.length)));
      if (event.key === "Enter") (event.preventDefault(), run(items[at]));
      if (event.key === "Delete" && event.shiftKey && items[at]?.saved) (event.preventDefault(), unsave(items[at].saved), change());
    },
  });

  const known = () => [
    ...saved().map((one) => ({ kind: "palette.saved", text: one.name, place: one.place, saved: one.place })),
    ...VIEWS.map((name) => ({ kind: "palette.go", text: t(`view.${name}`), place: address(name) })),
    ...saving(),
    ...actions().map((action) => ({ kind: "palette.do", ...action })),
  ];

  function change() {
    const query = input.value.trim();
    const words = query.toLowerCase().split(/\s+/);
    const fits = known().filter((item) => words.every((word) => item.text.toLowerCase().includes(word)));
    const search = query && { kind: "palette.search", text: query, place: address("search", "", { q: query }) };
    show([...fits, search].filter(Boolean));
    clearTimeout(timer);
    find.stop();
    if (query.length > 1) timer = setTimeout(() => more(query), PAUSE_MS);
  }

  /** Add what a search finds. */
  async function more(query) {
    try {
      const { results } = await find("memory.search", { query, maxResults: 6 });
      const found = (results ?? []).map((hit) =>
        hit.source === "entries"
          ? { kind: "palette.memory", text: hit.snippet, place: address("memories", hit.path.replace(/^entries\//, "")) }
          : { kind: "palette.note", text: `${hit.path}: ${hit.snippet}`, place: address("notes", hit.path, { from: hit.startLine, to: hit.endLine }) },
      );
      show([...items, ...found]);
    } catch (error) {
      if (!isAborted(error)) show(items); // the palette works without results
    }
  }

  function show(some) {
    items = some.slice(0, MAX_SHOWN);
    fill(
      list,
      items.map((item, index) =>
        el(
          "li",
          { id: `palette-${index}`, role: "option", "aria-selected": "false", onclick: () => run(item) },
          el("span", { class: "faint" }, t(item.kind)),
          el("span", { class: "palette-text" }, item.text),
        ),
      ),
    );
    choose(Math.min(at, Math.max(0, items.length - 1)));
  }

  function choose(index) {
    at = index;
    [...list.children].forEach((node, place) => node.setAttribute("aria-selected", String(place === at)));
    input.setAttribute("aria-activedescendant", items.length ? `palette-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  }

  function run(item) {
    if (!item) return;
    find.stop();
    clearTimeout(timer);
    close();
    if (item.place) location.hash = item.place;
    else item.run();
  }

  close = dialog(t("palette.title"), (body) => {
    input.autofocus = true;
    body.append(input, list, el("p", { class: "hint" }, t("palette.hint")));
  });
  change();
}

// ---- saved searches -------------------------------------------------------------------------------------------------

function saved() {
  try {
    const found = JSON.parse(remembered("searches") ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

const keep = (searches) => remember("searches", searches.length ? JSON.stringify(searches) : null);
const unsave = (place) => keep(saved().filter((one) => one.place !== place));

/** The action that saves the search or the filters of the address. */
function saving() {
  const { view, params } = here();
  params.delete("peek");
  const given = Object.fromEntries(params);
  const place = address(view, "", given);
  if (!["search", "memories", "recalls"].includes(view) || Object.keys(given).length === 0) return [];
  if (saved().some((one) => one.place === place)) return [];
  const name = `${t(`view.${view}`)}: ${Object.values(given).join(", ")}`;
  const run = () => {
    keep([...saved(), { name, place }]);
    announce(t("palette.kept", { name }), t("do.undo"), () => unsave(place));
  };
  return [{ kind: "palette.do", text: t("palette.save"), run }];
}
