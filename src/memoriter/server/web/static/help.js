// The keys, on demand.

import { ask } from "./dialogs.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";

const KEYS = [
  ["/", "help.search"],
  ["j k", "help.step"],
  ["Enter", "help.open"],
  ["Esc", "help.escape"],
  ["g s", "view.search"],
  ["g m", "view.memories"],
  ["g n", "view.notes"],
  ["g r", "view.recalls"],
  ["g p", "view.map"],
  ["g h", "view.health"],
  ["e", "help.edit"],
  ["u", "help.undo"],
  ["+ − 0", "help.zoom"],
  ["?", "help.title"],
];

export function help() {
  ask(t("help.title"), (body) => {
    body.append(
      el(
        "dl",
        { class: "keys" },
        KEYS.map(([keys, text]) => [
          el(
            "dt",
            {},
            keys.split(" ").map((key) => el("kbd", {}, key)),
          ),
          el("dd", {}, t(text)),
        ]),
      ),
    );
  });
}
