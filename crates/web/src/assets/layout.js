// The frame around the views.

import { logOutButton, themeButton } from "./buttons.js";
import { h } from "./dom.js";
import { store } from "./live.js";

const TABS = [["links", "Links"], ["map", "Map"], ["changes", "Changes"], ["admin", "Administration"]];

export function layout(view, tab, logOut) {
  const { me } = store;
  const tabs = TABS.filter(([name]) => name !== "admin" || me.role === "admin").map(([name, text]) =>
    h("a", { href: `#/${name}`, "aria-current": name === tab ? "page" : null }, text));
  return [
    h("header", { class: "top" },
      h("div", { class: "top-inner" },
        h("a", { class: "brand", href: "#/links" }, h("img", { src: "/assets/icon.svg", alt: "" }), me.title || "Link limits"),
        h("nav", { class: "tabs", "aria-label": "Views" }, tabs),
        h("div", { class: "who" },
          h("span", { class: "name" }, h("b", {}, me.name), h("span", { class: "small muted" }, me.role)),
          themeButton(),
          logOutButton(logOut)))),
    h("div", { class: "offline", role: "status" }),
    h("main", { class: "main", id: "main", tabindex: "-1" }, view),
  ];
}
