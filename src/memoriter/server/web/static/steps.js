// The steps of the history: who comes back to one finds the page scrolled as it was, and the focus where it was.

const left = new Map(); // step → where it was left
let now = named();

history.scrollRestoration = "manual"; // the browser's own comes before there is anything to scroll

/** To call when the address has changed, before anything is drawn; gives a way to put things back, once they are. */
export function stepped() {
  left.set(now, { top: scrollY, href: document.activeElement?.getAttribute("href") });
  const known = left.get(history.state?.step);
  now = named();
  const here = now;
  return () => {
    if (!known || here !== now) return;
    scrollTo(0, known.top);
    if (known.href) document.querySelector(`main a[href="${CSS.escape(known.href)}"]`)?.focus({ preventScroll: true });
  };
}

function named() {
  const step = history.state?.step ?? `${Date.now()}-${left.size}`;
  history.replaceState({ ...history.state, step }, "");
  return step;
}
