// The machine of an AS: the archive that it joins with, and the end of the trust in earlier ones.

import { api, file } from "./api.js";
import { confirmed, dialog, h, say } from "./dom.js";
import { store } from "./live.js";
import { asName } from "./names.js";

// Saves the archive of an AS; `said` is given what became of it.
async function save(one, said, after) {
  try {
    const { blob, name } = await file(`ases/${one.isd_as}/archive`);
    const link = h("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    // The browser has begun to save it by then.
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    said(`Saved as ${name}`);
    await after();
  } catch (problem) {
    said(problem.message);
  }
}

function archiveButton(one, said, after) {
  return h("button", { type: "button", onclick: () => save(one, said, after) }, "Fetch archive");
}

// Says what is to be done once the machine is refused.
function showReplaced(one, after) {
  const result = h("p", { class: "result", role: "status" });
  const said = (text) => { result.textContent = text; };
  dialog(`The secret of ${asName(one)} was replaced`,
    h("p", {}, "Its machine is refused, and the AS cannot be reached. To bring it back, fetch its new archive, and run there:"),
    h("code", {}, "hawser as join ARCHIVE"),
    h("p", { class: "small muted" }, "Whoever has the archive is this AS: keep it like a key."),
    result,
    h("div", { class: "row" }, archiveButton(one, said, after), h("button", { class: "primary" }, "Done")));
}

// The buttons for the machine of an AS; `after` is called when something has changed.
export function machineButtons(one, after) {
  if (!store.me.archives) return [];
  const replace = async () => {
    try {
      await api("DELETE", `ases/${one.isd_as}/secret`);
      showReplaced(one, after);
      await after();
    } catch (problem) {
      say(problem.message);
    }
  };
  const question = `Replace the secret of ${asName(one)}? Its archives so far, and its machine, are refused at once. The AS cannot be reached until its machine joins with a new archive, which has other keys.`;
  return [
    archiveButton(one, say, after),
    one.host.has_secret ? h("button", { type: "button", onclick: () => confirmed(question, replace, "Replace secret") }, "New secret") : null,
  ];
}
