// The frame around the views.

import { h, svg } from "./dom.js";
import { store } from "./live.js";

const TABS = [["links", "Links"], ["map", "Map"], ["changes", "Changes"], ["admin", "Administration"]];

function themeButton() {
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

export function layout(view, tab, logOut) {
  const { me } = store;
  const tabs = TABS.filter(([name]) => name !== "admin" || me.role === "admin").map(([name, text]) =>
    h("a", { href: `#/${name}`, "aria-current": name === tab ? "page" : null }, text));
  const exit = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("path", { fill: "none", stroke: "currentColor", "stroke-width": "2", "stroke-linecap": "round", "stroke-linejoin": "round", d: "M14 4H6a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h8M11 12h10m-4-4 4 4-4 4" }));
  return [
    h("header", { class: "top" },
      h("div", { class: "top-inner" },
        h("a", { class: "brand", href: "#/links" }, h("img", { src: "/assets/icon.svg", alt: "" }), me.title || "Link limits"),
        h("nav", { class: "tabs", "aria-label": "Views" }, tabs),
        h("div", { class: "who" },
          h("span", { class: "name" }, h("b", {}, me.name), h("span", { class: "small muted" }, me.role)),
          themeButton(),
          h("button", { class: "icon plain", type: "button", "aria-label": "Log out", title: "Log out", onclick: logOut }, exit)))),
    h("div", { class: "offline", role: "status" }),
    h("main", { class: "main", id: "main", tabindex: "-1" }, view),
  ];
}
