// Render Markdown as elements: headings, lists, tasks, code, quotes, tables, emphasis and links. HTML in a note stays text,
// images show their description, and links lead to the web or to another note. Spans are in markdown_spans.js.

import { el, measure } from "./dom.js";
import { MAX_CHARS, spans } from "./markdown_spans.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?\s*#*\s*$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)(.*)$/;
const TASK = /^\[([ xX])\]\s+(.*)$/;
const QUOTE = /^ {0,3}>\s?(.*)$/;
const DIVIDER = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const PIECE_CHARS = 4_000;
const MAX_ITEMS = 150; // in one list, so that a long list is drawn in steps; the next items are another list
const MAX_COLUMNS = 200; // a wider table is shown as text
const MAX_CELLS = 2_000; // in one table, for the same reason; the next rows are another table with the same columns
const MAX_DEPTH = 12; // nesting of lists and quotes; deeper lines become paragraphs

/** Render the blocks of a text. `first` is its first line number; `resolve` maps a relative link to an address or null.
 *  With `tick(line)`, tasks are checkboxes. */
export function rendered(text, options) {
  return [...renderedBlocks(text, options)];
}

/** The same, one block at a time, for a long text that is drawn in several steps. */
export function* renderedBlocks(text, { first = 1, resolve = () => null, tick = null } = {}) {
  const lines = text
    .split("\n")
    .map((line, index) => ({ text: line.replace(/\r$/, ""), number: first + index }));
  yield* blocks(lines, { resolve, tick, depth: 0, top: first === 1 });
}

function* blocks(lines, given) {
  const context = { ...given, open: { end: 0 } }; // the table whose rows continue
  let at = 0;
  if (context.top && lines[0]?.text === "---") {
    const end = lines.findIndex((line, index) => index > 0 && /^(?:---|\.\.\.)\s*$/.test(line.text));
    if (end > 0) {
      yield placed(el("pre", { class: "front-matter", tabindex: "0" }, texts(lines.slice(1, end))), lines.slice(0, end + 1));
      at = end + 1;
    }
  }
  while (at < lines.length) {
    if (lines[at].text.trim() === "") {
      at++;
      continue;
    }
    const [node, next] = block(lines, at, { ...context, top: false });
    yield placed(node, lines.slice(at, next));
    at = next;
  }
}

function block(lines, at, context) {
  if (at < context.open.end) return tableRows(lines, at, context);
  const line = lines[at].text;
  const fence = FENCE.exec(line);
  if (fence) return code(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    // The page has the h1, so the headings of a note start at h2.
    return [el(`h${Math.min(6, heading[1].length + 1)}`, {}, spans(heading[2] ?? "", context)), at + 1];
  }
  if (RULE.test(line)) return [el("hr"), at + 1];
  if (context.depth < MAX_DEPTH) {
    if (QUOTE.test(line)) return quote(lines, at, context);
    if (ITEM.test(line)) return list(lines, at, context);
    if (line.includes("|") && isDivider(lines[at + 1]?.text ?? "")) {
      return table(lines, at, context);
    }
  }
  return paragraph(lines, at, context);
}

function isDivider(line) {
  return line.includes("-") && DIVIDER.test(line) && line.split("|").length <= MAX_COLUMNS;
}

function code(lines, at, fence) {
  const closing = new RegExp(`^ {0,3}${fence[1][0]}{${fence[1].length},}\\s*$`);
  let end = at + 1;
  while (end < lines.length && !closing.test(lines[end].text)) end++;
  const body = texts(lines.slice(at + 1, end));
  return [
    el("pre", { tabindex: "0", "data-language": fence[2] || null }, el("code", {}, body)),
    Math.min(lines.length, end + 1),
  ];
}

function quote(lines, at, context) {
  let end = at;
  const inner = [];
  while (end < lines.length && QUOTE.test(lines[end].text)) {
    inner.push({ text: QUOTE.exec(lines[end].text)[1], number: lines[end].number });
    end++;
  }
  return [el("blockquote", {}, [...blocks(inner, { ...context, depth: context.depth + 1 })]), end];
}

function list(lines, at, context) {
  const [, lead, sign] = ITEM.exec(lines[at].text);
  const ordered = /\d/.test(sign);
  const items = [];
  let end = at;
  while (end < lines.length && items.length < MAX_ITEMS) {
    const next = itemEnd(lines, end, lead.length);
    const item = ITEM.exec(lines[end].text);
    if (
      !item ||
      item[1].length > lead.length + 1 ||
      item[1].length < lead.length ||
      /\d/.test(item[2]) !== ordered
    )
      break;
    items.push(listItem(lines.slice(end, next), item, context));
    end = next;
    while (end < lines.length && lines[end].text.trim() === "" && ITEM.test(lines[end + 1]?.text ?? ""))
      end++;
  }
  const start = ordered ? Number.parseInt(sign, 10) : 1;
  return [
    el(ordered ? "ol" : "ul", { start: ordered && start !== 1 ? start : null }, items),
    Math.max(end, at + 1),
  ];
}

// An item continues over lines that are indented further, and over single blank lines between them.
function itemEnd(lines, at, lead) {
  let end = at + 1;
  while (end < lines.length) {
    const text = lines[end].text;
    if (text.trim() === "") {
      if ((lines[end + 1]?.text ?? "").search(/\S/) <= lead) break;
    } else if (text.search(/\S/) <= lead) break;
    end++;
  }
  return end;
}

function listItem(lines, item, context) {
  const task = TASK.exec(item[3]);
  const own = { text: task ? task[2] : item[3], number: lines[0].number };
  const inset = Math.min(
    ...lines
      .slice(1)
      .filter((line) => line.text.trim())
      .map((line) => line.text.search(/\S/)),
    99,
  );
  const rest = lines
    .slice(1)
    .map((line) => ({ text: line.text.slice(Math.min(inset, line.text.length)), number: line.number }));
  const body = [...blocks([own, ...rest], { ...context, depth: context.depth + 1 })];
  const loose = lines.some((line) => line.text.trim() === "");
  const inside = loose
    ? body
    : body.flatMap((node) => (node.tagName === "P" ? [...node.childNodes] : [node]));
  const box = task && taskBox(task, lines[0].number, context);
  return placed(el("li", { class: task ? "has-task" : null }, box, inside), lines);
}

function taskBox([, mark, text], line, { tick }) {
  const sign = mark === " " ? "☐" : "☑";
  if (!tick) return el("span", { class: "task", role: "img", "aria-label": sign }, sign);
  return el("input", {
    type: "checkbox",
    class: "task",
    checked: mark !== " ",
    "aria-label": text.slice(0, 200),
    onchange: () => tick(line),
  });
}

function table(lines, at, { open, ...context }) {
  let end = at + 2;
  while (end < lines.length && lines[end].text.includes("|") && lines[end].text.trim()) end++;
  open.end = end;
  open.sides = cells(lines[at + 1].text).map((cell) =>
    /^:-+:$/.test(cell) ? "center" : /-:$/.test(cell) ? "end" : null,
  );
  open.isLong = (end - at) * open.sides.length > MAX_CELLS;
  return tableRows(lines, at + 2, { open, ...context }, el("thead", {}, tableRow(lines[at], "th", open.sides, context)));
}

/** Rows of a table, with or without its head. */
function tableRows(lines, at, { open, ...context }, head = null) {
  const end = Math.min(open.end, at + Math.max(1, Math.floor(MAX_CELLS / open.sides.length)));
  const body = el(
    "tbody",
    {},
    lines.slice(at, end).map((line) => tableRow(line, "td", open.sides, context)),
  );
  const node = el("table", { class: open.isLong ? "long-table" : null }, head, body);
  if (open.isLong) measure(node, "--columns", open.sides.length);
  return [el("div", { class: "wide", tabindex: "0" }, node), end];
}

function tableRow(line, name, sides, context) {
  const row = cells(line.text)
    .slice(0, sides.length)
    .map((cell, column) =>
      el(name, { "data-align": sides[column], scope: name === "th" ? "col" : null }, spans(cell, context)),
    );
  return placed(el("tr", {}, row), [line]);
}

function cells(line) {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function paragraph(lines, at, context) {
  let end = at + 1;
  while (end < lines.length && lines[end].text.trim() !== "" && !begins(lines[end].text)) end++;
  const body = lines
    .slice(at, end)
    .map((line) => line.text.replace(/^\s+/, ""))
    .join("\n");
  if (body.length > MAX_CHARS) return [el("div", {}, pieces(body).map((piece) => el("p", {}, piece))), end];
  return [el("p", {}, spans(body, context)), end];
}

// A paragraph that is too long to be laid out at once, as several.
function pieces(text) {
  const found = [];
  for (let at = 0; at < text.length; ) {
    const space = text.slice(at + PIECE_CHARS - 100, at + PIECE_CHARS).search(/\s/);
    const end = space < 0 ? at + PIECE_CHARS : at + PIECE_CHARS - 100 + space;
    found.push(text.slice(at, end));
    at = end;
  }
  return found;
}

function begins(line) {
  return (
    FENCE.test(line) ||
    HEADING.test(line) ||
    QUOTE.test(line) ||
    RULE.test(line) ||
    /^\s*(?:[-*+]|\d{1,9}[.)])\s+\S/.test(line)
  );
}

function texts(lines) {
  return lines.map((line) => line.text).join("\n");
}

// Mark the source lines of a block, so that a citation can highlight it.
function placed(node, lines) {
  if (lines.length === 0) return node;
  node.setAttribute("data-from", lines[0].number);
  node.setAttribute("data-to", lines.at(-1).number);
  return node;
}
