// Invisible characters, drawn visibly: controls that reorder what a person reads, zero-width characters, tags. The rules are
// those of memoriter/invisible.py.

const NAMES = {
  0x00ad: "SHY", 0x034f: "CGJ", 0x061c: "ALM", 0x180e: "MVS",
  0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM",
  0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO",
  0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};
const MAX_NAMES = 4; // in one mark; more are counted

const LETTER = "\\u0590-\\u08ff\\u0900-\\u0dff\\u1000-\\u109f\\ufb1d-\\ufefc"; // scripts that join letters with ZWJ and ZWNJ
const EMOJI = "\\u00a9\\u00ae\\u203c-\\u3299\\u{1f000}-\\u{1faff}";
const INVISIBLE = new RegExp(
  "(?:" +
    `(?<![${LETTER}])[\\u200c\\u200d](?![${EMOJI}])|(?<![${LETTER}${EMOJI}\\ufe0f])[\\u200c\\u200d]` + // not a join
    `|(?<![${EMOJI}0-9#*])[\\ufe00-\\ufe0f]` + // not the choice between a text and an emoji
    "|[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200e\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]" +
    ")+",
  "gu",
);

const nameOf = (char) =>
  NAMES[char.codePointAt(0)] ?? `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

function named(run) {
  const chars = [...run];
  const names = chars.slice(0, MAX_NAMES).map(nameOf);
  return `⟦${[...names, ...(chars.length > MAX_NAMES ? [`+${chars.length - MAX_NAMES}`] : [])].join(" ")}⟧`;
}

/** Return the text with a mark in place of invisible characters. */
export function reveal(text) {
  return text.replace(INVISIBLE, named);
}

/** Split a text into `[text, isMark]`: what is visible, and the marks. */
export function visiblePieces(text) {
  const pieces = [];
  let at = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    if (match.index > at) pieces.push([text.slice(at, match.index), false]);
    pieces.push([named(match[0]), true]);
    at = match.index + match[0].length;
  }
  if (at < text.length || at === 0) pieces.push([text.slice(at), false]);
  return pieces;
}

/** Return the names of the invisible characters in some texts, each once. */
export function invisible(...texts) {
  return [...new Set(texts.flatMap((text) => (text.match(INVISIBLE) ?? []).flatMap((run) => [...run].map(nameOf))))];
}
