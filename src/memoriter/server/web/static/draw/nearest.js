// Find the point nearest to a place among tens of thousands, by a grid of cells.

const PER_CELL = 4; // points in a cell, on average

/** Return a function `(x, y, radius, admits) → index | -1` in the coordinates of the points. `admits` gets an index. */
export function nearest(xs, ys, { left, top, width, height }) {
  const side = Math.max(1, Math.ceil(Math.sqrt(xs.length / PER_CELL)));
  const place = (value, start, size) => Math.max(0, Math.min(side - 1, Math.floor(((value - start) / size) * side)));
  const cells = new Uint32Array(xs.length);
  for (let index = 0; index < cells.length; index++)
    cells[index] = place(xs[index], left, width) + side * place(ys[index], top, height);
  // The points of cell `c` are `sorted[ends[c - 1]]` up to `sorted[ends[c]]`.
  const ends = new Uint32Array(side * side);
  for (const cell of cells) ends[cell]++;
  for (let cell = 1; cell < ends.length; cell++) ends[cell] += ends[cell - 1];
  const sorted = new Uint32Array(xs.length);
  const next = ends.slice();
  for (let index = 0; index < cells.length; index++) sorted[--next[cells[index]]] = index;

  return (x, y, radius, admits) => {
    let best = -1;
    let least = radius * radius;
    for (let row = place(y - radius, top, height); row <= place(y + radius, top, height); row++)
      for (let column = place(x - radius, left, width); column <= place(x + radius, left, width); column++) {
        const cell = column + side * row;
        for (let at = next[cell]; at < ends[cell]; at++) {
          const index = sorted[at];
          const away = (xs[index] - x) ** 2 + (ys[index] - y) ** 2;
          if (away < least && admits(index)) [best, least] = [index, away];
        }
      }
    return best;
  };
}
