// An empty table: because of the filters, or because nothing was learned yet; then how that comes about.

import { el } from "../dom.js";
import { t } from "../i18n.js";
import { nothing } from "../notices.js";
import { address } from "../router.js";

export function noMemories(filtered, add) {
  if (filtered)
    return nothing(
      t("entry.none.filtered"),
      el("p", {}, el("a", { href: address("memories") }, t("do.clear.filters"))),
    );
  return nothing(
    t("entry.none"),
    el("p", { class: "faint" }, t("entry.none.how")),
    el("p", {}, el("button", { type: "button", class: "quiet", onclick: add }, t("entry.add"))),
  );
}
