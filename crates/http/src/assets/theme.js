// The colours: those of the system, or those that were chosen on this page. Runs before the first
// drawing, so that the page does not flash.
(() => {
  const root = document.documentElement;
  const chosen = () => {
    try { return localStorage.getItem("theme"); } catch { return null; }
  };
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  apply(chosen());
  window.hawserTheme = {
    isDark() {
      const system = matchMedia("(prefers-color-scheme: dark)").matches;
      return root.dataset.theme ? root.dataset.theme === "dark" : system;
    },
    toggle() {
      const theme = this.isDark() ? "light" : "dark";
      try { localStorage.setItem("theme", theme); } catch { /* Then it holds until the page is left. */ }
      apply(theme);
    },
  };
})();
