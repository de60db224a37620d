// Render emphasis, code, links and line breaks in a block of Markdown. Blocks are in markdown.js.

import { el } from "./dom.js";

export const MAX_CHARS = 20_000; // a longer paragraph is shown as plain text
const MAX_FAILURES = 300; // marks without an end, after which the remaining text is shown as plain text
const MAX_DEPTH = 6;
const ESCAPED = /^\\([!-/:-@[-`{-~])/;
const CODE = /^(`+)([\s\S]*?[^`])\1(?!`)/;
const LINK =
  /^(!?)\[((?:[^\[\]\\\n]|\\.|\[[^\[\]\n]{0,200}\]){0,1000})\]\(\s*<?([^\s()<>]{0,2000}(?:\([^\s()<>]{0,500}\)[^\s()<>]{0,500})?)>?(?:\s+["'][^"'\n]{0,500}["'])?\s*\)/;
const ANGLE_LINK = /^<(https?:\/\/[^\s<>]{1,2000})>/i;
const BARE_LINK = /^https?:\/\/[^\s<>"'`|\\^{}\[\]]{1,2000}[^\s<>"'`|\\^{}\[\].,;:!?)。，；：！？）]/i;
const STRONG = /^(\*\*|__)(?=\S)([\s\S]{0,4000}?\S)\1/;
const EMPHASIS = /^(\*|_)(?=[^\s*_])([\s\S]{0,4000}?[^\s*_])\1(?![\p{L}\p{N}])/u;
const STRIKETHROUGH = /^~~(?=\S)([\s\S]{0,4000}?\S)~~/;
const SPECIAL = /[\\`![<*_~h\n]/g;

/** Return the nodes for the text of a block. */
export function spans(text, context, depth = 0) {
  if (text.length > MAX_CHARS || depth > MAX_DEPTH) return [text];
  const nodes = [];
  let plain = "";
  let at = 0;
  let failures = 0;
  const flush = () => {
    if (plain) nodes.push(plain);
    plain = "";
  };
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const next = SPECIAL.exec(text)?.index ?? text.length;
    plain += text.slice(at, next);
    at = next;
    if (at >= text.length) break;
    const [node, length] = span(text.slice(at, at + 6000), text[at - 1] ?? " ", context, depth);
    if (length === 0) {
      const run = /^`+/.exec(text.slice(at, at + 6000))?.[0].length ?? 1; // a part of a run of backticks has no end either
      plain += text.slice(at, at + run);
      at += run;
      if (text[at - 1] !== "h" && ++failures > MAX_FAILURES) {
        plain += text.slice(at).replaceAll("\n", " ");
        break;
      }
    } else if (typeof node === "string") {
      plain += node;
      at += length;
    } else {
      flush();
      nodes.push(node);
      at += length;
    }
  }
  flush();
  return nodes;
}

function span(rest, before, context, depth) {
  const within = /[\p{L}\p{N}]/u.test(before);
  const inner = (text) => spans(text, context, depth + 1);
  let match;
  switch (rest[0]) {
    case "\\":
      match = ESCAPED.exec(rest);
      return match ? [match[1], 2] : ["", 0];
    case "`":
      match = CODE.exec(rest);
      return match ? [el("code", {}, match[2].replace(/^ (.*) $/s, "$1")), match[0].length] : ["", 0];
    case "!":
    case "[":
      match = LINK.exec(rest);
      return match ? [match[1] ? picture(match) : link(match, context, inner), match[0].length] : ["", 0];
    case "<":
      match = ANGLE_LINK.exec(rest);
      return match ? [outside(match[1], [match[1]]), match[0].length] : ["", 0];
    case "h":
      match = within ? null : BARE_LINK.exec(rest);
      return match ? [outside(match[0], [match[0]]), match[0].length] : ["", 0];
    case "~":
      match = STRIKETHROUGH.exec(rest);
      return match ? [el("s", {}, inner(match[1])), match[0].length] : ["", 0];
    case "\n":
      return [" ", 1];
    default:
      return emphasis(rest, within, inner);
  }
}

function emphasis(rest, within, inner) {
  if (within && rest[0] === "_") return ["", 0]; // snake_case is not emphasis
  const strong = STRONG.exec(rest);
  if (strong) return [el("strong", {}, inner(strong[2])), strong[0].length];
  const light = EMPHASIS.exec(rest);
  return light ? [el("em", {}, inner(light[2])), light[0].length] : ["", 0];
}

// Images are not loaded: a note may come from outside, and loading an image would reveal the reader to its server.
function picture([, , alt, target]) {
  return el("span", { class: "picture", title: target }, alt || target);
}

function link([, , label, target], context, inner) {
  if (/^https?:\/\//i.test(target)) return outside(target, inner(label));
  const place = context.resolve(target);
  return place
    ? el("a", { href: place }, inner(label))
    : el("span", { class: "nowhere", title: target }, inner(label));
}

function outside(target, children) {
  return el("a", { href: target, rel: "noopener noreferrer", target: "_blank" }, children);
}
