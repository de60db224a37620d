// What changed between two versions of a text, word by word; Chinese and Japanese character by character.

const WORD = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;
const MOST = 600; // words; beyond, the table of the comparison would cost more than it shows

/** Pieces in reading order: `["same" | "gone" | "new", text]`. */
export function compared(before, after) {
  const old = before.match(WORD) ?? [];
  const now = after.match(WORD) ?? [];
  if (old.length > MOST || now.length > MOST)
    return [
      ["gone", before],
      ["new", after],
    ];
  return joined(walked(old, now, lengths(old, now)));
}

// lengths[i][j]: the most words that old from i and now from j have in common, in order.
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
