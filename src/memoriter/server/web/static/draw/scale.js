// The scale of bars, where one busy day must not flatten all others.

const BUSY = 3; // a value that is this many times higher than usual is cut
const ROOM = 1.5; // the cut bars are this much higher than the usual ones

/** The value at the top of the scale. Higher values are cut, and their bars say so. */
export function topOf(values) {
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b);
  if (sorted.length === 0) return 1;
  const most = sorted.at(-1);
  const usual = sorted[Math.floor(0.9 * (sorted.length - 1))];
  return most > BUSY * usual ? usual * ROOM : most;
}
