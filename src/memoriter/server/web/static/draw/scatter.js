// Up to fifty thousand points on a canvas, with zoom, panning, selection and the point under the pointer. The view decides
// what the points mean, which of them are shown, and their colours. A second canvas above the points shows what follows the
// pointer, so that moving it does not draw the points again.
//
// Points are drawn in slices, into a picture that is shown when it is complete. Until then, the picture before is moved and
// scaled to where its points are now.

import { nearest } from "./nearest.js";
import { picture } from "./stamps.js";

const MARGIN = 24;
const HIT_RADIUS_PX = 12; // pixels between the pointer and a point that it still hits
const MAX_ZOOM = 60;
const MIN_DRAG_PX = 4; // a press that moves fewer pixels is a click
const SLICE_MS = { moving: 2, still: 12 }; // work on points in one frame
const BLOCK = 512; // points between two looks at the clock

/** `place` contains both canvases and gets the events. `onLook(toX, toY, box)` is called when the view has moved. */
export function scatter(place, { canvas, layer, painter, onBrush, onPick, onHover, onLook }) {
  const above = layer.getContext("2d");
  let points = [];
  let [xs, ys, sizes] = [[], [], []]; // of the points
  let bright = new Uint8Array(); // 1 for a chosen point
  let inkOf = new Uint8Array();
  let bounds = { left: 0, top: 0, width: 1, height: 1 };
  let find = nearest(xs, ys, bounds);
  let look = { scale: 1, x: 0, y: 0 }; // zoom and offset, in pixels
  let brushing = false;
  let drag = null;
  let brush = null;
  let hovered = null;
  let frame = 0;
  let isStale = true; // the points have to be drawn again
  let drawn = 0; // how many of them are: first those that are not chosen, then those that are
  let drawnFor = look; // the view for which they are being drawn
  let shownFor = look; // the view for which the picture on the canvas was drawn
  let movedTo = null; // the view of the last frame
  let isLayerEmpty = true;
  let image = null;
  let box = { width: 1, height: 1 };
  let unit = 1; // pixels per unit of the data
  const touches = new Map();

  function measure() {
    box = { width: canvas.clientWidth || 1, height: canvas.clientHeight || 1 };
    unit = Math.min((box.width - 2 * MARGIN) / bounds.width, (box.height - 2 * MARGIN) / bounds.height);
  }

  // Convert data to pixels: fit it into the canvas, then apply zoom and offset. And back.
  const middleX = () => bounds.left + bounds.width / 2;
  const middleY = () => bounds.top + bounds.height / 2;
  const toX = (x) => (x - middleX()) * unit * look.scale + box.width / 2 + look.x;
  const toY = (y) => (y - middleY()) * unit * look.scale + box.height / 2 + look.y;
  const fromX = (x) => (x - look.x - box.width / 2) / (unit * look.scale) + middleX();
  const fromY = (y) => (y - look.y - box.height / 2) / (unit * look.scale) + middleY();

  const isDrawing = () => drawn < 2 * points.length;

  function draw() {
    frame = 0;
    const isMoving = movedTo !== look;
    movedTo = look;
    const ratio = Math.min(2, devicePixelRatio || 1);
    prepare(ratio);
    if (isStale && !isDrawing()) start();
    if (isDrawing()) drawPoints(isMoving ? SLICE_MS.moving : SLICE_MS.still);
    if (isMoving) onLook(toX, toY, box);
    movePicture();
    drawLayer(ratio);
    if (isDrawing() || isStale) soonAbove();
  }

  function prepare(ratio) {
    const [width, height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    if (image && canvas.width === width && canvas.height === height) return;
    for (const one of [canvas, layer]) Object.assign(one, { width, height });
    const colours = painter();
    image = picture(canvas, ratio, getComputedStyle(canvas).backgroundColor, colours.inks);
    inkOf = new Uint8Array(points.length);
    for (let index = 0; index < points.length; index++) inkOf[index] = colours.inkOf(points[index]);
    start();
  }

  function start() {
    isStale = false;
    drawnFor = look;
    drawn = 0;
    image.clear();
    if (points.length === 0) show();
  }

  function show() {
    image.show();
    shownFor = drawnFor;
  }

  function drawPoints(duration) {
    // Smaller symbols when there are many.
    const crowd = points.length > 20_000 ? 0.45 : points.length > 3000 ? 0.72 : points.length > 400 ? 1 : 1.35;
    const zoomed = crowd * Math.min(1.8, Math.sqrt(drawnFor.scale));
    const scale = unit * drawnFor.scale;
    const [left, top] = [box.width / 2 + drawnFor.x - middleX() * scale, box.height / 2 + drawnFor.y - middleY() * scale];
    const until = performance.now() + duration;
    do {
      const end = Math.min(2 * points.length, drawn + BLOCK);
      for (; drawn < end; drawn++) {
        const isBright = drawn >= points.length ? 1 : 0;
        const index = isBright ? drawn - points.length : drawn;
        if (bright[index] !== isBright) continue;
        image.put(inkOf[index], left + xs[index] * scale, top + ys[index] * scale, sizes[index] * zoomed, isBright ? 0.85 : 0.13);
      }
    } while (isDrawing() && performance.now() < until);
    if (!isDrawing()) show();
  }

  function movePicture() {
    const by = look.scale / shownFor.scale;
    const [x, y] = [box.width / 2, box.height / 2];
    const moved = `translate(${x + look.x - (x + shownFor.x) * by}px, ${y + look.y - (y + shownFor.y) * by}px) scale(${by})`;
    canvas.style.transform = look === shownFor ? "" : moved;
  }

  function drawLayer(ratio) {
    if (isLayerEmpty && !hovered && !brush) return;
    isLayerEmpty = !hovered && !brush;
    above.setTransform(ratio, 0, 0, ratio, 0, 0);
    above.clearRect(0, 0, box.width, box.height);
    if (hovered) ring(toX(hovered.x), toY(hovered.y));
    if (brush) frameBrush();
  }

  function ring(x, y) {
    above.strokeStyle = ink();
    above.lineWidth = 1.5;
    above.beginPath();
    above.arc(x, y, 9, 0, 2 * Math.PI);
    above.stroke();
  }

  function frameBrush() {
    above.strokeStyle = ink();
    above.setLineDash([4, 3]);
    above.lineWidth = 1;
    above.strokeRect(brush.x0, brush.y0, brush.x1 - brush.x0, brush.y1 - brush.y0);
    above.setLineDash([]);
  }

  const ink = () => getComputedStyle(canvas).color;
  const soonAbove = () => (frame ||= requestAnimationFrame(draw));
  const soon = () => ((isStale = true), soonAbove());

  function zoom(factor, x = box.width / 2, y = box.height / 2) {
    const { width, height } = box;
    const scale = Math.max(0.6, Math.min(MAX_ZOOM, look.scale * factor));
    const by = scale / look.scale;
    look = {
      scale,
      x: (look.x + width / 2 - x) * by + x - width / 2,
      y: (look.y + height / 2 - y) * by + y - height / 2,
    };
    held();
    soon();
  }

  // Touch scrolls the page until the map is zoomed or in selection mode. Then dragging moves the map.
  const held = () => place.classList.toggle("held", brushing || look.scale > 1.01);

  const near = (x, y) =>
    points[find(fromX(x), fromY(y), HIT_RADIUS_PX / (unit * look.scale), (index) => bright[index])] ?? null;

  const at = (event) => {
    const { left, top } = place.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };

  function down(event) {
    place.setPointerCapture(event.pointerId);
    const [x, y] = at(event);
    touches.set(event.pointerId, [x, y]);
    drag = { x, y, moved: false, brush: brushing || event.shiftKey };
  }

  function move(event) {
    const [x, y] = at(event);
    if (touches.size === 2 && touches.has(event.pointerId)) return pinch(event.pointerId, x, y);
    if (!drag) {
      const found = near(x, y);
      if (found !== hovered) (onHover((hovered = found), x, y), soonAbove());
      return null;
    }
    if (Math.hypot(x - drag.x, y - drag.y) > MIN_DRAG_PX) drag.moved = true;
    if (!drag.moved) return null;
    if (drag.brush) {
      const [x0, y0, x1, y1] = [Math.min(x, drag.x), Math.min(y, drag.y), Math.max(x, drag.x), Math.max(y, drag.y)];
      brush = { x0, y0, x1, y1 };
      soonAbove();
    } else {
      const [lastX, lastY] = touches.get(event.pointerId) ?? [x, y];
      look = { ...look, x: look.x + x - lastX, y: look.y + y - lastY };
      touches.set(event.pointerId, [x, y]);
      soon();
    }
    return null;
  }

  function pinch(id, x, y) {
    const [other] = [...touches].filter(([key]) => key !== id).map(([, place]) => place);
    const before = Math.hypot(touches.get(id)[0] - other[0], touches.get(id)[1] - other[1]);
    touches.set(id, [x, y]);
    drag = null;
    zoom(Math.hypot(x - other[0], y - other[1]) / (before || 1), (x + other[0]) / 2, (y + other[1]) / 2);
  }

  function up(event) {
    touches.delete(event.pointerId);
    if (drag && !drag.moved) {
      const found = near(drag.x, drag.y);
      if (found) onPick(found);
    } else if (drag?.brush && brush) {
      onBrush([fromX(brush.x0), fromY(brush.y0), fromX(brush.x1), fromY(brush.y1)]);
    }
    drag = null;
    brush = null;
    soonAbove();
  }

  const wheel = (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), ...at(event));
  };
  const repaint = () => {
    image = null;
    soon();
  };
  place.addEventListener("pointerdown", down);
  place.addEventListener("pointermove", move);
  place.addEventListener("pointerup", up);
  place.addEventListener("pointercancel", up);
  place.addEventListener("pointerleave", () => {
    hovered = null;
    onHover(null);
    soonAbove();
  });
  place.addEventListener("wheel", wheel, { passive: false });
  document.addEventListener("memoriter:theme", repaint);
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", repaint);
  const watching = new ResizeObserver(() => (measure(), (movedTo = null), soon()));
  watching.observe(canvas);

  return {
    show(found) {
      points = found;
      [xs, ys, sizes] = [0, 1, 2].map(() => new Float64Array(found.length));
      found.forEach((point, index) => {
        [xs[index], ys[index], sizes[index]] = [point.x, point.y, 5 + 1.6 * (point.importance ?? 3)];
      });
      bright = new Uint8Array(found.length).fill(1);
      bounds = spread(xs, ys);
      find = nearest(xs, ys, bounds);
      hovered = null;
      movedTo = null;
      measure();
      repaint();
    },
    /** Dim the points whose flag is 0. */
    choose: (flags) => ((bright = flags), soon()),
    repaint,
    brushes: (on) => ((brushing = on), held()),
    zoom,
    pan: (x, y) => ((look = { ...look, x: look.x + x, y: look.y + y }), soon()),
    reset: () => ((look = { scale: 1, x: 0, y: 0 }), held(), soon()),
    close() {
      cancelAnimationFrame(frame);
      watching.disconnect();
      document.removeEventListener("memoriter:theme", repaint);
      system.removeEventListener("change", repaint);
    },
  };
}

function spread(xs, ys) {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let index = 0; index < xs.length; index++) {
    left = Math.min(left, xs[index]);
    right = Math.max(right, xs[index]);
    top = Math.min(top, ys[index]);
    bottom = Math.max(bottom, ys[index]);
  }
  return xs.length
    ? { left, top, width: right - left || 1, height: bottom - top || 1 }
    : { left: 0, top: 0, width: 1, height: 1 };
}
