// Bandwidth groups: limits that hold for several torrents together.

import { ratePair, toggle } from "./controls.js";
import { submitDialog } from "./dialogs.js";
import { field, h } from "./dom.js";
import { count } from "./format.js";
import { store } from "./store.js";

function item(name, set) {
  const alter = (change) => set({ groups: [{ name, ...change }] });
  const both = ratePair(alter, { about: name });
  const members = h("p", { class: "small muted" });
  const exempt = toggle({
    label: "The limits of all torrents do not hold for it", on: `${name}: only its own limits hold`, off: `${name}: the limits of all torrents hold, too`,
    of: (is) => ({ exempt: is }),
  }, alter);
  return {
    node: h("li", { class: "main-part group" }, h("h3", {}, name), members, both.node, exempt.node),
    show(group) {
      const all = [...store.torrents.values()].filter((torrent) => torrent.limits.group === name).length;
      const text = `${count(all)} torrent${all === 1 ? "" : "s"}`;
      if (members.textContent !== text) members.textContent = text;
      both.show(group);
      exempt.show(group.exempt);
    },
  };
}

export function groups(set) {
  const made = new Map();
  const list = h("ul", { class: "groups" });
  const empty = h("p", { class: "muted" }, "There are no groups.");
  const create = () => {
    const name = h("input", { required: true, spellcheck: "false" });
    submitDialog("New group", [field("Name", name, { hint: "Torrents are put into it at Limits of each." })], {
      name: "Make",
      async submit() {
        await set({ groups: [{ name: name.value.trim() }] });
        return `Made the group ${name.value.trim()}`;
      },
    });
  };
  return {
    node: h("section", { class: "card", "aria-label": "Bandwidth groups" },
      h("header", {}, h("h2", {}, "Bandwidth groups"), h("button", { type: "button", onclick: create }, "New group …")),
      h("div", { class: "body main-part" },
        h("p", { class: "small muted" }, "The limits of a group hold for its torrents together. One that limits nothing and has no torrents gives way to others where there are as many as there may be."),
        empty, list)),
    show(about) {
      const there = new Set(about.groups.map((group) => group.name));
      for (const [name, { node }] of made) if (!there.has(name)) { made.delete(name); node.remove(); }
      about.groups.forEach((group, at) => {
        if (!made.has(group.name)) made.set(group.name, item(group.name, set));
        const one = made.get(group.name);
        if (list.children[at] !== one.node) list.insertBefore(one.node, list.children[at] ?? null);
        one.show(group);
      });
      empty.hidden = about.groups.length > 0;
    },
  };
}
