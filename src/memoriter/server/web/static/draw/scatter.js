// Up to ten thousand points on a canvas, with zoom, panning, selection and the point under the pointer. The view decides
// what the points mean and which of them are shown.

import { colour, shape } from "./types.js";

const MARGIN = 24;
const HIT_RADIUS_PX = 12; // pixels between the pointer and a point that it still hits
const MAX_ZOOM = 60;
const MIN_DRAG_PX = 4; // a press that moves fewer pixels is a click

export function scatter(canvas, { onBrush, onPick, onHover }) {
  const context = canvas.getContext("2d");
  let points = [];
  let chosen = () => true;
  let bounds = { left: 0, top: 0, width: 1, height: 1 };
  let look = { scale: 1, x: 0, y: 0 }; // zoom and offset, in pixels
  let brushing = false;
  let drag = null;
  let brush = null;
  let hovered = null;
  let frame = 0;
  let sprites = new Map();
  const touches = new Map();

  const size = () => ({ width: canvas.clientWidth || 1, height: canvas.clientHeight || 1 });

  // Convert data to pixels: fit it into the canvas, then apply zoom and offset.
  function placed(point) {
    const { width, height } = size();
    const unit = Math.min((width - 2 * MARGIN) / bounds.width, (height - 2 * MARGIN) / bounds.height);
    const x = (point.x - bounds.left - bounds.width / 2) * unit + width / 2;
    const y = (point.y - bounds.top - bounds.height / 2) * unit + height / 2;
    return [
      (x - width / 2) * look.scale + width / 2 + look.x,
      (y - height / 2) * look.scale + height / 2 + look.y,
    ];
  }

  function sprite(type, ratio) {
    if (sprites.has(type)) return sprites.get(type);
    const side = Math.ceil(14 * ratio * 2);
    const made = document.createElement("canvas");
    made.width = made.height = side;
    const pen = made.getContext("2d");
    pen.setTransform(side / 14, 0, 0, side / 14, side / 2, side / 2);
    pen.fillStyle = colour(type);
    pen.fill(new Path2D(shape(type)), "evenodd");
    sprites.set(type, made);
    return made;
  }

  function draw() {
    frame = 0;
    const { width, height } = size();
    const ratio = Math.min(3, devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      sprites = new Map();
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const crowd = points.length > 3000 ? 0.72 : points.length > 400 ? 1 : 1.35; // smaller symbols when there are many
    const zoomed = Math.min(1.8, Math.sqrt(look.scale));
    for (const bright of [false, true]) {
      context.globalAlpha = bright ? 0.85 : 0.13;
      for (const point of points) {
        if (chosen(point) !== bright) continue;
        const [x, y] = placed(point);
        if (x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
        const side = (5 + 1.6 * (point.importance ?? 3)) * crowd * zoomed;
        context.drawImage(sprite(point.type, ratio), x - side / 2, y - side / 2, side, side);
      }
    }
    context.globalAlpha = 1;
    if (hovered) ring(placed(hovered));
    if (brush) frameBrush();
  }

  function ring([x, y]) {
    context.strokeStyle = ink();
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(x, y, 9, 0, 2 * Math.PI);
    context.stroke();
  }

  function frameBrush() {
    context.strokeStyle = ink();
    context.setLineDash([4, 3]);
    context.lineWidth = 1;
    context.strokeRect(brush.x0, brush.y0, brush.x1 - brush.x0, brush.y1 - brush.y0);
    context.setLineDash([]);
  }

  const ink = () => getComputedStyle(canvas).color;
  const soon = () => (frame ||= requestAnimationFrame(draw));

  function zoom(factor, x = size().width / 2, y = size().height / 2) {
    const { width, height } = size();
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
  const held = () => canvas.classList.toggle("held", brushing || look.scale > 1.01);

  function near(x, y) {
    let best = null;
    let least = HIT_RADIUS_PX * HIT_RADIUS_PX;
    for (const point of points) {
      if (!chosen(point)) continue;
      const [px, py] = placed(point);
      const away = (px - x) ** 2 + (py - y) ** 2;
      if (away < least) [best, least] = [point, away];
    }
    return best;
  }

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  function down(event) {
    canvas.setPointerCapture(event.pointerId);
    const [x, y] = at(event);
    touches.set(event.pointerId, [x, y]);
    drag = { x, y, moved: false, brush: brushing || event.shiftKey };
  }

  function move(event) {
    const [x, y] = at(event);
    if (touches.size === 2 && touches.has(event.pointerId)) return pinch(event.pointerId, x, y);
    if (!drag) {
      const found = near(x, y);
      if (found !== hovered) (onHover((hovered = found), x, y), soon());
      return null;
    }
    if (Math.hypot(x - drag.x, y - drag.y) > MIN_DRAG_PX) drag.moved = true;
    if (!drag.moved) return null;
    if (drag.brush)
      brush = {
        x0: Math.min(x, drag.x),
        y0: Math.min(y, drag.y),
        x1: Math.max(x, drag.x),
        y1: Math.max(y, drag.y),
      };
    else {
      const [lastX, lastY] = touches.get(event.pointerId) ?? [x, y];
      look = { ...look, x: look.x + x - lastX, y: look.y + y - lastY };
      touches.set(event.pointerId, [x, y]);
    }
    soon();
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
      const { x0, y0, x1, y1 } = brush;
      onBrush(
        points.filter((point) => {
          const [x, y] = placed(point);
          return x >= x0 && x <= x1 && y >= y0 && y <= y1;
        }),
      );
    }
    drag = null;
    brush = null;
    soon();
  }

  const wheel = (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), ...at(event));
  };
  const repaint = () => {
    sprites = new Map();
    soon();
  };
  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => {
    hovered = null;
    onHover(null);
    soon();
  });
  canvas.addEventListener("wheel", wheel, { passive: false });
  document.addEventListener("memoriter:theme", repaint);
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", repaint);
  const watching = new ResizeObserver(soon);
  watching.observe(canvas);

  return {
    show(found) {
      points = found;
      bounds = spread(found);
      soon();
    },
    choose: (test) => ((chosen = test), soon()),
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

function spread(points) {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x, y } of points) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return points.length
    ? { left, top, width: right - left || 1, height: bottom - top || 1 }
    : { left: 0, top: 0, width: 1, height: 1 };
}
