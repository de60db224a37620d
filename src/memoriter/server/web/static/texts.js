// Comparing texts: what changed between two versions, and where a search matched.

const WORD = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;
const MAX_WORDS = 600; // longer texts are not compared word by word

/** Compare two versions word by word, Chinese and Japanese by character: `["same" | "gone" | "new", text]`. */
export function compare(before, after) {
  const old = before.match(WORD) ?? [];
  const now = after.match(WORD) ?? [];
  if (old.length > MAX_WORDS || now.length > MAX_WORDS)
    return [
      ["gone", before],
      ["new", after],
    ];
  return joined(walked(old, now, lengths(old, now)));
}

// lengths[i][j] is the length of the longest common subsequence of old from i and now from j.
function lengths(old, now) {
  const table = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      table[i][j] = old[i] === now[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}

function* walked(old, now, table) {
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      yield ["same", old[i++]];
      j++;
    } else if (j >= now.length || (i < old.length && table[i + 1][j] >= table[i][j + 1])) {
      yield ["gone", old[i++]];
    } else {
      yield ["new", now[j++]];
    }
  }
}

function joined(pieces) {
  const all = [];
  for (const [kind, text] of pieces) {
    const last = all.at(-1);
    if (last?.[0] === kind) last[1] += text;
    else all.push([kind, text]);
  }
  return all;
}

const CJK = /[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]/;
const LETTER = /[\p{L}\p{N}_]/u;
const MAX_MARKS = 200; // in one snippet

/** Find the ranges `[start, end]` of matches, in order. A token is a stem: the whole word that starts with it is marked. */
export function findMatches(text, tokens) {
  const low = text.toLowerCase();
  if (low.length !== text.length) return []; // a letter whose lower case has another length would shift every mark
  const ranges = [];
  for (const token of new Set(tokens.map((one) => one.toLowerCase()).filter(Boolean))) {
    for (let at = low.indexOf(token); at >= 0 && ranges.length < MAX_MARKS; at = low.indexOf(token, at + 1)) {
      const range = CJK.test(token) ? [at, at + token.length] : wholeWord(low, at, token.length);
      if (range) ranges.push(range);
    }
  }
  return apart(ranges);
}

function wholeWord(text, at, length) {
  if (at > 0 && LETTER.test(text[at - 1]) && !CJK.test(text[at - 1])) return null;
  let end = at + length;
  while (end < text.length && LETTER.test(text[end]) && !CJK.test(text[end])) end++;
  return end - at - length <= 5 ? [at, end] : null; // "run" does not match "runtimeenvironment"
}

function apart(ranges) {
  const all = [];
  for (const [start, end] of ranges.sort((a, b) => a[0] - b[0])) {
    const last = all.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else all.push([start, end]);
  }
  return all;
}
