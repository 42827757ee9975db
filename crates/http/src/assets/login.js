// Logging in: a token for a session.

import { api } from "./api.js";
import { field, h } from "./dom.js";

// Calls `done` with the answer. `title` is the name of the page, and `hint` says where the token is found.
export function login(done, reason, { title, hint }) {
  const token = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true, spellcheck: "false" });
  const error = h("p", { class: "error", role: "alert" }, reason ?? "");
  const button = h("button", { class: "primary", type: "submit" }, "Log in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      done(await api("POST", "session", { token: token.value.trim() }));
    } catch (problem) {
      error.textContent = problem.message;
      token.select();
      token.focus();
    } finally {
      button.disabled = false;
    }
  };
  const form = h("form", { class: "card", onsubmit: submit },
    h("div", { class: "brand" }, h("img", { src: "/assets/icon.svg", alt: "" }), h("h1", {}, title)),
    field("Token", token, { hint }),
    error, h("div", {}, button));
  queueMicrotask(() => token.focus());
  return h("main", { class: "login", id: "main" }, form);
}
