// The first visit, when there are no memories: three steps. The first one works on this page.

import { ask } from "../api.js";
import { el, fill, rings } from "../dom.js";
import { t } from "../i18n.js";
import { sentence } from "../notices.js";

/** The shell command that writes a first note. */
function quoted(workspace) {
  const file = workspace ? `${workspace}/MEMORY.md` : "MEMORY.md";
  return /^[\w./~-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
}

/** The three steps. After the first, the page searches for the new memory. */
export function firstSteps(workspace, input, search) {
  const text = el("textarea", {
    rows: "2",
    id: "first-memory",
    placeholder: t("first.example"),
    maxlength: "2000",
  });
  const wrong = el("p", { class: "wrong", role: "alert" });
  const keep = el("button", { type: "submit", class: "primary" }, t("first.keep"));
  const form = el(
    "form",
    {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        remember();
      },
    },
    el("label", { for: "first-memory" }, t("first.one.label")),
    text,
    wrong,
    el("div", {}, keep),
  );

  async function remember() {
    const said = text.value.trim() || t("first.example");
    keep.disabled = true;
    fill(wrong);
    try {
      await ask("entries.add", { text: said });
      input.value = said
        .split(/[\s，。,.]+/)
        .filter(Boolean)
        .slice(0, 4)
        .join(" ");
      input.focus();
      search();
    } catch (error) {
      fill(wrong, sentence(error));
    } finally {
      keep.disabled = false;
    }
  }

  return el(
    "section",
    { class: "welcome first", "aria-labelledby": "first-title" },
    rings(),
    el("h2", { id: "first-title" }, t("first.title")),
    el("p", { class: "lead" }, t("first.lead")),
    el(
      "ol",
      { class: "steps" },
      el("li", {}, el("h3", {}, t("first.one")), el("p", {}, t("first.one.text")), form),
      el(
        "li",
        {},
        el("h3", {}, t("first.two")),
        el("p", {}, t("first.two.text")),
        el("pre", { tabindex: "0" }, el("code", {}, `echo '- ${t("first.two.example")}' >> ${quoted(workspace)}`)),
      ),
      el(
        "li",
        {},
        el("h3", {}, t("first.three")),
        el("p", {}, t("first.three.text")),
        el("pre", { tabindex: "0" }, el("code", {}, "memoriter install")),
      ),
    ),
  );
}
