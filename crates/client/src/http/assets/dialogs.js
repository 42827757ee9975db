// Dialogs that ask for something, and stay open with the reason when it is refused.

import { h, say } from "./dom.js";

// `submit` is awaited, and returns what is said once it is done. `name` is what the button says.
export function submitDialog(title, parts, { name, submit, kind = "primary" }) {
  const error = h("p", { class: "error", role: "alert" });
  const button = h("button", { class: kind, type: "submit" }, name);
  const send = async (event) => {
    event.preventDefault();
    button.disabled = true;
    error.textContent = "";
    try {
      const text = await submit();
      node.close();
      if (text) say(text);
    } catch (problem) {
      error.textContent = problem.message;
    } finally {
      button.disabled = false;
    }
  };
  const node = h("dialog", { "aria-label": title }, h("form", { onsubmit: send },
    h("h2", {}, title), ...parts, error,
    h("div", { class: "row" }, button, h("button", { type: "button", onclick: () => node.close() }, "Cancel"))));
  node.addEventListener("close", () => node.remove());
  document.body.append(node);
  node.showModal();
  return node;
}
