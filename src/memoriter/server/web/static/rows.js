// A window onto a long list. All rows have the same height, so only those in sight exist, and only the data near them is in
// memory. The list asks for what is missing, and a change elsewhere never moves what the reader looks at.

import { el, measure } from "./dom.js";

export const PAGE_SIZE = 100;
const OVERSCAN = 12; // rows drawn above and below the sight
const MIN_OVERSCAN = 5; // with fewer than these, rows are drawn again
const NEW_ROWS = 8; // created in one frame; the others follow in the next frames
const AHEAD = 60; // rows whose data is requested before they come into sight
const MAX_KEPT = 2000; // rows in memory
const PAUSE_MS = 60; // a reader who flies over the list requests only where they land
const FLIGHT = 10; // pixels per millisecond, a dozen screens per second: rows that fly by are not drawn
const STOPPED_MS = 150;

/** `body` is the tbody. `request({ offset, around })` returns `{ items, offset, total }`. `draw(item)` returns a row,
 *  `key(item)` the id and everything that the row shows. `drawn()` is called after rows have changed, `failed(error)` if a
 *  page could not be loaded, `printing({ from, to, total })` before the rows are printed. */
export function rowWindow(body, { request, draw, key, drawn, failed, printing }) {
  const above = space();
  const below = space();
  let items = new Map(); // index → item
  let rows = new Map(); // id → { node, item, index }
  let span = { from: 0, to: 0 }; // the rows that are drawn
  let isStale = true; // the data has changed since
  let total = 0;
  let height = 0;
  let asked = null; // the range that is being requested
  let frame = 0;
  let seen = { y: scrollY, at: 0 }; // where the reader was in the last frame
  let pause = 0;
  let stopped = 0;
  let turn = 0; // changes when a new list starts

  function range() {
    const top = -body.getBoundingClientRect().top;
    const first = height ? Math.floor(top / height) : 0;
    const count = height ? Math.ceil(innerHeight / height) : 30;
    const clamp = (value) => Math.max(0, Math.min(total, value));
    const around = (rows) => ({ from: clamp(first - rows), to: clamp(first + count + rows) });
    return { ...around(OVERSCAN), least: around(MIN_OVERSCAN), first: clamp(first) };
  }

  // Most frames of a slow scroll find what they need in place.
  function isDrawn() {
    const { least } = range();
    return !isStale && height > 0 && span.from <= least.from && least.to <= span.to;
  }

  // What is in sight comes first. Rows beyond the number for one frame come in the next ones; until then their place is
  // empty, or shows the row as it was.
  function render() {
    const { from, to, first } = range();
    const { nodes, put, focus } = drawing(from);
    let [start, end] = [first, first];
    while (end < to && put(end)) end++;
    while (start > from && put(start - 1)) start--;
    span = { from: start, to: end };
    const wanted = Array.from({ length: end - start }, (_, offset) => nodes.get(start + offset));
    place([start > 0 && above, ...wanted, end < total && below].filter(Boolean));
    if (!height && wanted.length > 0 && items.size > 0) {
      height = wanted[0].getBoundingClientRect().height; // a list that is not visible has none
      if (height) return render();
    }
    measure(above, "--height", `${start * height}px`);
    measure(below, "--height", `${(total - end) * height}px`);
    focus();
    drawn();
    if (isStale && height) schedule();
    return wantMore(from, to);
  }

  // `put(index)` creates the node of a row or keeps the one it has. It returns false if it has none and its turn is later.
  function drawing(from) {
    const nodes = new Map(); // index → node
    const before = rows;
    let left = height ? NEW_ROWS : body.checkVisibility() ? 1 : Infinity; // one visible row shows the height of all
    let focused = null; // takes the place of what had the focus
    rows = new Map();
    isStale = false;

    function put(index) {
      const item = items.get(index);
      const id = item ? item.id : `blank-${index - from}`; // by place: a reader who flies over the list sees the same ones
      const old = before.get(id);
      const isKept = old && isSame(old.item, item);
      const isLate = !isKept && item && left-- <= 0;
      isStale ||= Boolean(isLate);
      if (isLate && !old) return false;
      const node = isKept || isLate ? old.node : item ? draw(item) : blank();
      if (old?.index !== index || old.node !== node) node.setAttribute("aria-rowindex", String(index + 2));
      if (old && old.node !== node && old.node.contains(document.activeElement)) focused = sameIn(node, old.node);
      rows.set(id, { node, item: isLate ? old.item : item, index });
      nodes.set(index, node);
      return true;
    }

    return { nodes, put, focus: () => focused?.focus({ preventScroll: true }) };
  }

  const isSame = (old, item) => old === item || (old && item && key(old) === key(item));

  function place(wanted) {
    const present = new Set(wanted);
    for (const node of [...body.children]) if (!present.has(node)) node.remove();
    let at = body.firstChild;
    for (const node of wanted) {
      if (node === at) at = at.nextSibling;
      else body.insertBefore(node, at);
    }
  }

  function wantMore(from, to) {
    const inSight = missing(from, to);
    const start = inSight ?? missing(Math.max(0, from - AHEAD), Math.min(total, to + AHEAD));
    if (start === null || (asked && asked.from <= start && start < asked.to)) return;
    clearTimeout(pause);
    pause = setTimeout(() => load(start, from), inSight === null ? 0 : PAUSE_MS);
  }

  function missing(from, to) {
    for (let index = from; index < to; index++) if (!items.has(index)) return index;
    return null;
  }

  async function load(start, from) {
    const offset = start < from ? Math.max(0, start - PAGE_SIZE + AHEAD) : start;
    const mine = turn;
    asked = { from: offset, to: offset + PAGE_SIZE };
    const wanted = asked;
    try {
      const answer = await request({ offset });
      if (mine !== turn || wanted !== asked) return;
      take(answer);
    } catch (error) {
      if (mine === turn) failed(error);
    } finally {
      if (wanted === asked) asked = null;
    }
    if (mine === turn) scrolled(); // draw the rows, and remember them
  }

  function take(answer) {
    isStale = true;
    total = answer.total;
    answer.items.forEach((item, index) => items.set(answer.offset + index, item));
    if (items.size <= MAX_KEPT) return;
    const { first } = range();
    for (const index of items.keys()) if (Math.abs(index - first) > MAX_KEPT / 2) items.delete(index);
  }

  const schedule = () => (frame ||= requestAnimationFrame(follow));

  // Rows that fly by wait until the reader slows down. The space in their place looks like rows whose data is on its way.
  function follow(now) {
    frame = 0;
    const isFlying = Math.abs(scrollY - seen.y) > FLIGHT * (now - seen.at);
    seen = { y: scrollY, at: now };
    if (isFlying) schedule();
    else if (body.isConnected && !isDrawn()) render();
  }

  function scrolled() {
    schedule();
    clearTimeout(stopped);
    stopped = setTimeout(remember, STOPPED_MS);
  }

  function resized() {
    height = 0;
    schedule();
  }

  /** The first row in sight: its item, its index and its distance from the top of the window. If its data is on its
   *  way, the nearest row that has data. */
  function anchor() {
    if (!height || items.size === 0) return null;
    const { first } = range();
    const nearer = (one, other) => (Math.abs(other - first) < Math.abs(one - first) ? other : one);
    const index = items.has(first) ? first : [...items.keys()].reduce(nearer);
    return { id: items.get(index).id, index, y: body.getBoundingClientRect().top + index * height };
  }

  // A reload shows the same rows again.
  function remember() {
    if (!body.isConnected) return;
    const scrolledIn = scrollY > 0 && body.getBoundingClientRect().top < 0;
    history.replaceState({ ...history.state, anchor: scrolledIn ? anchor() : null }, "");
  }

  function put(at) {
    const index = indexOf(at.id);
    if (index < 0 || !height) return;
    scrollBy(0, body.getBoundingClientRect().top + index * height - at.y);
  }

  function indexOf(id) {
    for (const [index, item] of items) if (item.id === id) return index;
    return -1;
  }

  // Paper has no empty space: it gets the rows whose data is here, and no others.
  function print() {
    const known = [...items.keys()].sort((one, other) => one - other);
    const nodes = known.map((index) => rows.get(items.get(index).id)?.node ?? draw(items.get(index)));
    printing({ from: (known[0] ?? -1) + 1, to: (known.at(-1) ?? -1) + 1, total });
    place(nodes);
    isStale = true;
  }

  addEventListener("scroll", scrolled, { passive: true });
  addEventListener("resize", resized);
  addEventListener("beforeprint", print);
  addEventListener("afterprint", schedule);
  addEventListener("pagehide", remember);

  return {
    indexOf,
    at: (index) => items.get(index),
    total: () => total,
    items: () => items.values(),
    /** Start a new list with its first page; `at` is an anchor that comes into place again. */
    start(answer, at = null) {
      turn++;
      asked = null;
      items = new Map();
      rows = new Map();
      take(answer);
      render();
      if (at) (put(at), render());
    },
    /** Replace what is known by a page around the reader. `stays` are anchors: the first that is still there keeps
     *  its place. Returns the ids that were in this part of the list and are gone. */
    renew(answer, stays) {
      turn++;
      asked = null;
      const before = items;
      const end = answer.offset + answer.items.length;
      items = new Map();
      take(answer);
      render();
      const at = stays.find((one) => indexOf(one.id) >= 0);
      if (at && indexOf(at.id) !== at.index) (scrollBy(0, (indexOf(at.id) - at.index) * height), render());
      const now = new Set([...items.values()].map((item) => item.id));
      const near = [...before].filter(([index]) => index >= answer.offset && index < end);
      return near.map(([, item]) => item.id).filter((id) => !now.has(id));
    },
    /** Draw every row again, for example after the selection has changed. */
    redraw() {
      for (const row of rows.values()) row.item = undefined;
      render();
    },
    anchor,
    /** Load a page that contains this row and bring it into sight. Returns its index, or -1. */
    async reach(target) {
      let index = typeof target === "number" ? target : indexOf(target);
      if (index < 0 || !items.has(index)) {
        const mine = turn;
        const answer = await request(index < 0 ? { offset: 0, around: target } : { offset: Math.max(0, index - PAGE_SIZE / 2) });
        if (mine !== turn) return -1;
        take(answer);
        index = index < 0 ? indexOf(target) : index;
      }
      if (index < 0 || index >= total) return -1;
      const top = body.getBoundingClientRect().top + index * height;
      if (top < height) scrollBy(0, top - 2 * height);
      else if (top + 2 * height > innerHeight) scrollBy(0, top + 3 * height - innerHeight);
      render();
      return index;
    },
    close() {
      turn++;
      clearTimeout(pause);
      clearTimeout(stopped);
      removeEventListener("scroll", scrolled);
      removeEventListener("resize", resized);
      removeEventListener("beforeprint", print);
      removeEventListener("afterprint", schedule);
      removeEventListener("pagehide", remember);
    },
  };
}

/** The element in a new row at the place of the focused one in the old row. */
function sameIn(node, old) {
  const parts = (row) => [...row.querySelectorAll("a, input, button")];
  return parts(node)[parts(old).indexOf(document.activeElement)];
}

// One cell: a cell across hidden columns would make them wide again.
function space() {
  return el("tr", { class: "space", "aria-hidden": "true" }, el("td"));
}

/** A row whose data is on its way. */
function blank() {
  return el("tr", { class: "blank" }, el("td"));
}
