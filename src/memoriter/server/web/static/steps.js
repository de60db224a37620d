// Draw many elements in several steps, so that no step blocks the page.

const STEP_MS = 10; // work before the page gets a frame

/** Let the page draw a frame and handle events. */
export const pause = () => new Promise((done) => setTimeout(done));

/** Append the nodes of an iterator. Returns false if `isCurrent` became false before the end. */
export async function appendInSteps(parent, nodes, isCurrent = () => true) {
  let until = performance.now() + STEP_MS;
  let step = document.createDocumentFragment();
  for (const node of nodes) {
    step.append(node);
    if (performance.now() < until) continue;
    parent.append(step);
    await new Promise(requestAnimationFrame);
    await pause(); // the frame is drawn
    if (!isCurrent()) return false;
    step = document.createDocumentFragment();
    until = performance.now() + STEP_MS;
  }
  parent.append(step);
  return isCurrent();
}
