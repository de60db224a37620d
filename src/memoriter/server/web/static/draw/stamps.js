// Draw many symbols quickly: each symbol is rasterised once and then copied pixel by pixel. Tens of thousands of calls to
// the canvas would take ten times as long without a GPU.

import { shape } from "./types.js";

/** A picture of the size of a canvas. An ink is a type and a CSS colour; `background` is a CSS colour. */
export function picture(canvas, ratio, background, inks) {
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  const image = context.createImageData(width, height);
  const pixels = new Uint8Array(image.data.buffer); // whole numbers without clamping are twice as fast
  const stamps = inks.map(() => []); // by ink and size
  const blank = new Uint32Array(pixels.buffer);
  const [paper] = new Uint32Array(rgba(background).buffer);

  return {
    clear: () => blank.fill(paper),
    /** Draw the symbol of an ink around a place, in CSS pixels. */
    put(ink, x, y, size, alpha) {
      const side = Math.max(2, Math.round(size * ratio));
      const left = Math.round(x * ratio - side / 2);
      const top = Math.round(y * ratio - side / 2);
      if (left < 0 || top < 0 || left + side > width || top + side > height) return;
      const share = Math.round(alpha * 256);
      const source = (stamps[ink][side] ??= rasterise(inks[ink].type, inks[ink].colour, side));
      for (let row = 0, from = 0; row < side; row++) {
        let to = ((top + row) * width + left) * 4;
        for (let column = 0; column < side; column++, from += 4, to += 4) {
          const cover = (source[from + 3] * share) >> 8;
          if (cover === 0) continue;
          pixels[to] += ((source[from] - pixels[to]) * cover) >> 8;
          pixels[to + 1] += ((source[from + 1] - pixels[to + 1]) * cover) >> 8;
          pixels[to + 2] += ((source[from + 2] - pixels[to + 2]) * cover) >> 8;
        }
      }
    },
    show: () => context.putImageData(image, 0, 0),
  };
}

const SYMBOL = 14; // the size of the drawings in types.js

function rasterise(type, colour, side) {
  const pen = blankPen(side);
  pen.setTransform(side / SYMBOL, 0, 0, side / SYMBOL, side / 2, side / 2);
  pen.fillStyle = colour;
  pen.fill(new Path2D(shape(type)), "evenodd");
  return pen.getImageData(0, 0, side, side).data;
}

function rgba(colour) {
  const pen = blankPen(1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data;
}

function blankPen(side) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  return canvas.getContext("2d", { willReadFrequently: true });
}
