// Where the words that a search matched stand in a text.

const CJK = /[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]/;
const LETTER = /[\p{L}\p{N}_]/u;
const MOST = 200; // marks in one snippet

/** Ranges `[start, end]`, in order and apart. A token is a stem: the whole word that begins with it is marked. */
export function found(text, tokens) {
  const low = text.toLowerCase();
  if (low.length !== text.length) return []; // a letter that changes its length in small would shift every mark
  const ranges = [];
  for (const token of new Set(tokens.map((one) => one.toLowerCase()).filter(Boolean))) {
    for (let at = low.indexOf(token); at >= 0 && ranges.length < MOST; at = low.indexOf(token, at + 1)) {
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
  return end - at - length <= 5 ? [at, end] : null; // "run" is not "runtimeenvironment"
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
