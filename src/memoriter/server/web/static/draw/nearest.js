// Find the point nearest to a place among tens of thousands, by a grid of cells.

const PER_CELL = 4; // points in a cell, on average

/** Return a function `(x, y, radius, admits) → point | null` in the coordinates of the points. */
export function nearest(points, { left, top, width, height }) {
  const side = Math.max(1, Math.ceil(Math.sqrt(points.length / PER_CELL)));
  const cells = new Map();
  const place = (value, start, size) => Math.max(0, Math.min(side - 1, Math.floor(((value - start) / size) * side)));
  for (const point of points) {
    const key = place(point.x, left, width) + side * place(point.y, top, height);
    if (cells.has(key)) cells.get(key).push(point);
    else cells.set(key, [point]);
  }

  return (x, y, radius, admits) => {
    let best = null;
    let least = radius * radius;
    for (let row = place(y - radius, top, height); row <= place(y + radius, top, height); row++)
      for (let column = place(x - radius, left, width); column <= place(x + radius, left, width); column++)
        for (const point of cells.get(column + side * row) ?? []) {
          const away = (point.x - x) ** 2 + (point.y - y) ** 2;
          if (away < least && admits(point)) [best, least] = [point, away];
        }
    return best;
  };
}
