// Set the theme before the first paint, so that a dark page does not flash white. Everything else is in app.js.
(() => {
  try {
    const theme = localStorage.getItem("memoriter.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be disabled. The theme of the system applies then.
  }
})();
