// Administration: users, ASes, links.

import { api } from "./api.js";
import { AS_LINKS_TITLE, endsText, kindText } from "./as_links.js";
import { confirmed, dialog, field, h, say } from "./dom.js";
import { load, store } from "./live.js";
import { machineButtons } from "./machine.js";
import { asName, propertiesText } from "./names.js";

const ROLES = ["admin", "user", "reader"];

// Shows a secret once.
function showToken(name, token) {
  const copy = h("button", { type: "button", onclick: async () => {
    try { await navigator.clipboard.writeText(token); say("Copied"); } catch { say("Select the token to copy it"); }
  } }, "Copy");
  dialog(`Token of ${name}`,
    h("p", {}, "It is shown this once: only its hash is kept."), h("code", {}, token),
    h("div", { class: "row" }, copy, h("button", { class: "primary" }, "Done")));
}

// A form that asks for one thing to be added.
function adder(title, fields, add) {
  const error = h("p", { class: "error", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await add();
      error.textContent = "";
    } catch (problem) {
      error.textContent = problem.message;
    }
  };
  return h("form", { onsubmit: submit }, h("div", { class: "fields" }, fields, h("div", {}, h("button", { class: "primary", type: "submit" }, title))), error);
}

function select(name, options) {
  return h("select", { name }, options.map(([value, text]) => h("option", { value }, text)));
}

async function done(action, after) {
  try {
    await action();
    await after();
  } catch (problem) {
    say(problem.message);
  }
}

function users() {
  const body = h("tbody");
  const name = h("input", { required: true, maxlength: 64, autocomplete: "off" });
  const role = select("role", [["user", "user"], ["reader", "reader"], ["admin", "admin"]]);
  const draw = async () => {
    const { users } = await api("GET", "users");
    body.replaceChildren(...users.map((user) => {
      const choice = h("select", { "aria-label": `Role of ${user.name}`, onchange: () =>
        done(() => api("PATCH", `users/${user.id}`, { role: choice.value }), draw) },
      ROLES.map((one) => h("option", { value: one, selected: one === user.role }, one)));
      const token = () => done(async () => showToken(user.name, (await api("POST", `users/${user.id}/token`)).token), draw);
      const own = user.id === store.me.id;
      return h("tr", {}, h("td", {}, h("b", {}, user.name)), h("td", {}, choice),
        h("td", { class: "small muted" }, user.has_token ? "has a token" : "no token"),
        h("td", {}, h("div", { class: "row" },
          h("button", { type: "button", onclick: () => (own ? confirmed("Replace your own token? This session ends with it.", token) : token()) }, "New token"),
          h("button", { type: "button", disabled: !user.has_token, onclick: () => confirmed(`Revoke the token of ${user.name}?`, () => done(() => api("DELETE", `users/${user.id}/token`), draw)) }, "Revoke"),
          h("button", { class: "danger plain", type: "button", onclick: () => confirmed(`Remove the user ${user.name}?`, () => done(() => api("DELETE", `users/${user.id}`), draw)) }, "Remove"))));
    }));
  };
  draw().catch((problem) => say(problem.message));
  const add = async () => {
    const added = await api("POST", "users", { name: name.value.trim(), role: role.value });
    name.value = "";
    showToken(added.user.name, added.token);
    await draw();
  };
  return h("section", { class: "card" }, h("header", {}, h("h2", {}, "Users")),
    h("table", { class: "table users" }, h("thead", {}, h("tr", {}, ["Name", "Role", "Token", "Actions"].map((text) => h("th", { scope: "col" }, text)))), body),
    h("div", { class: "body" }, adder("Add user", [field("Name", name), field("Role", role)], add)));
}

function listOf(items, remove, after) {
  return h("table", { class: "table list" }, h("tbody", {}, items.map(({ name, detail, path, warning, as }) =>
    h("tr", {}, h("td", {}, h("b", {}, name), h("span", { class: "sub" }, detail)),
      h("td", {}, h("div", { class: "row" },
        as ? machineButtons(as, after) : null,
        h("button", { class: "danger plain", type: "button", onclick: () => confirmed(warning, () => remove(path)) }, "Remove")))))));
}

function network() {
  const node = h("div", { class: "main-part" });
  const remove = (path) => done(() => api("DELETE", path), refresh);
  const refresh = async () => { await load(); draw(); };
  const input = (attributes) => h("input", { autocomplete: "off", ...attributes });
  const number = (one) => (one.value.trim() === "" ? null : Number(one.value));
  const place = (latitude, longitude) => (latitude.value === "" && longitude.value === "" ? null : { latitude: number(latitude), longitude: number(longitude) });

  const asForm = (title, path, owner) => {
    const isdAs = input({ required: true, placeholder: "1-ff00:0:110" });
    const label = input({ required: true, maxlength: 64 });
    const addresses = input({ placeholder: "192.0.2.1, 2001:db8::1" });
    const [latitude, longitude] = [input({ type: "number", step: "any", min: -90, max: 90 }), input({ type: "number", step: "any", min: -180, max: 180 })];
    const fields = [field("ISD-AS", isdAs), field("Label", label), field("Addresses for links", addresses), field("Latitude", latitude), field("Longitude", longitude)];
    if (owner) fields.push(field("Owner", owner));
    return adder(title, fields, async () => {
      const body = { isd_as: isdAs.value.trim(), label: label.value.trim(), addresses: addresses.value.split(",").map((one) => one.trim()).filter(Boolean), place: place(latitude, longitude) };
      if (owner) body.owner = owner.value === "" ? null : Number(owner.value);
      await api("POST", path, body);
      await refresh();
    });
  };

  const draw = async () => {
    const { users } = await api("GET", "users");
    const owner = select("owner", [["", "nobody"], ...users.filter((user) => user.role !== "reader").map((user) => [user.id, user.name])]);
    const point = select("attachment_point", store.attachmentPoints.map((one) => [one.isd_as, asName(one)]));
    const far = select("user_as", store.ases.map((one) => [one.isd_as, asName(one)]));
    const address = input({ placeholder: "that of the AS" });
    const maximum = input({ type: "number", min: 0, step: "any", placeholder: "none" });
    const links = adder("Add link", [field("Attachment point", point), field("User AS", far), field("Address of the user AS", address), field("Maximum, Mbit/s", maximum)], async () => {
      const most = number(maximum) === null ? null : Math.round(number(maximum) * 1e6);
      const ip = address.value.trim() || null;
      await api("POST", "links", { attachment_point: point.value, user_as: far.value, ip, maximum: { egress: most, ingress: most } });
      await refresh();
    });
    const version = ({ host }) => (host.deployed === host.version ? `version ${host.version} in force` : `version ${host.version}, ${host.deployed ?? "none"} in force`);
    const several = ({ host }) => (host.duplicates.length ? ` · runs on several machines at once: ${host.duplicates.join(" and ")}` : "");
    const part = (title, items, form) => h("section", { class: "card" }, h("header", {}, h("h2", {}, title)),
      items.length ? listOf(items, remove, refresh) : null, h("div", { class: "body" }, form));
    node.replaceChildren(
      part("Attachment points", store.attachmentPoints.map((one) => ({ name: asName(one), detail: `${one.isd_as} · ${one.addresses.join(", ") || "no address"} · ${version(one)}${several(one)}`, path: `attachment-points/${one.isd_as}`, as: one, warning: `Remove the attachment point ${asName(one)} and its links?` })), asForm("Add attachment point", "attachment-points")),
      part("User ASes", store.ases.map((one) => ({ name: asName(one), detail: `${one.isd_as} · ${one.addresses.join(", ") || "no address"} · ${one.owner ? `user ${one.owner.name}` : "no owner"}${several(one)}`, path: `ases/${one.isd_as}`, as: one, warning: `Remove the user AS ${asName(one)} and its links?` })), asForm("Add user AS", "ases", owner)),
      part("Links", store.links.map((one) => ({ name: `${asName(one.attachment_point)} – ${asName(one.user_as)}`, detail: [`link ${one.id}`, one.user_as.ip ?? "no address", propertiesText(one)].filter(Boolean).join(" · "), path: `links/${one.id}`, warning: `Remove link ${one.id}, with its limits?` })), links),
      part(AS_LINKS_TITLE, store.asLinks.map((one) => ({ name: endsText(one), detail: kindText(one), path: `as-links/${one.id}`, warning: `Remove link ${one.id}, with its limits?` })), h("p", { class: "muted" }, "They are added by the API: POST /api/v1/as-links.")));
  };
  draw().catch((problem) => say(problem.message));
  return node;
}

export function admin() {
  return { node: [h("div", { class: "head" }, h("div", {}, h("h1", {}, "Administration"), h("p", { class: "muted" }, "Users and their tokens, attachment points, user ASes and links"))), users(), network()] };
}
