// Buttons of every page: the colours, and logging out.

import { h, svg } from "./dom.js";

export function themeButton() {
  const path = svg("path", { fill: "currentColor" });
  const button = h("button", { class: "icon plain", type: "button" },
    svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, path));
  const show = () => {
    const dark = window.hawserTheme.isDark();
    const name = dark ? "Use light colours" : "Use dark colours";
    button.setAttribute("aria-label", name);
    button.title = name;
    path.setAttribute("d", dark
      ? "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10Zm-1-6h2v3h-2Zm0 19h2v3h-2ZM1 11h3v2H1Zm19 0h3v2h-3ZM3.5 4.9l1.4-1.4L7 5.6 5.6 7Zm13.5 13.5 1.4-1.4 2.1 2.1-1.4 1.4ZM3.5 19.1 5.6 17 7 18.4l-2.1 2.1ZM17 5.6l2.1-2.1 1.4 1.4L18.4 7Z"
      : "M20.4 14.6A8.5 8.5 0 0 1 9.4 3.6a8.5 8.5 0 1 0 11 11Z");
  };
  button.addEventListener("click", () => { window.hawserTheme.toggle(); show(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
  return button;
}

export function logOutButton(logOut) {
  const exit = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("path", { fill: "none", stroke: "currentColor", "stroke-width": "2", "stroke-linecap": "round", "stroke-linejoin": "round", d: "M14 4H6a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h8M11 12h10m-4-4 4 4-4 4" }));
  return h("button", { class: "icon plain", type: "button", "aria-label": "Log out", title: "Log out", onclick: logOut }, exit);
}
