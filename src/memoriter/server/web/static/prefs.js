// What this browser remembers: language, theme, agent, and drafts of what was typed.

const PREFIX = "memoriter.";

export function remembered(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // Storage may be disabled. The choice then lasts until the page is closed.
  }
}

/** Return the names that begin like this. */
export function rememberedNames(beginning) {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX + beginning));
    return names.map((name) => name.slice(PREFIX.length));
  } catch {
    return [];
  }
}

const THEMES = ["system", "light", "dark"];

export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

export function nextTheme() {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  remember("theme", next === "system" ? null : next);
  document.dispatchEvent(new CustomEvent("memoriter:theme"));
  return next;
}
