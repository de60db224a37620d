// Correct or forget one thing in all its places: each place is listed with its line. All ticked places change together, and
// the receipt names what remains.

import { ask } from "../api.js";
import { ask as dialog } from "../dialogs.js";
import { el, fill } from "../dom.js";
import { form } from "../forms.js";
import { t, tn } from "../i18n.js";
import { announce, sentence } from "../notices.js";
import { field } from "../parts.js";

/** `kind` is `correct` or `forget`. `found` is the answer of `about.get`. */
export function changeEverywhere(kind, found, done) {
  const places = [
    ...[...found.entries, ...found.older].map((one) => ({ ref: one.id, text: one.text, name: t("source.entry") })),
    ...[...found.notes, ...found.conversations].map((one) => ({ ref: one.path, line: one.line, text: one.text, name: `${one.path}:${one.line}` })),
  ];
  dialog(
    t(`about.${kind}.title`, { name: found.name }),
    (body, close) => {
      const rows = places.map((one) => placeRow(one, kind));
      const wrong = el("input", { type: "text", value: found.name, autocomplete: "off", dir: "auto" });
      const right = el("input", { type: "text", autocomplete: "off", dir: "auto" });
      const replace = () => rows.forEach((row) => row.replace(wrong.value, right.value));
      for (const input of [wrong, right]) input.addEventListener("input", replace);
      if (kind === "correct") right.autofocus = true;
      const run = async () => {
        const chosen = rows.map((row) => row.value()).filter(Boolean);
        if (chosen.length === 0) throw new Error(t(`about.${kind}.none`));
        const made = await ask("about.change", { places: chosen, name: kind === "forget" ? found.name : wrong.value.trim() });
        fill(body, receipt(made, close));
        body.querySelector(".dialog-actions button:last-child").focus();
        announce(t("about.changed"), t("do.undo"), () => undo(made, done));
        done();
      };
      const change = kind === "correct" && el("div", { class: "beside" }, field(t("about.wrong"), wrong), field(t("about.right"), right));
      const hint = el("p", { class: "hint" }, t(`about.${kind}.hint`));
      const list = el("ul", { class: "to-erase places", tabindex: "0" }, rows.map((row) => row.node));
      body.append(form([hint, change, list], t(`about.${kind}`), run, close, { danger: kind === "forget" }));
    },
    { wide: true },
  );
}

/** Ask for another name of a thing, and remember that both are one. The memory that says so can be forgotten. */
export function joinName(name, done) {
  dialog(t("about.join.title", { name }), (body, close) => {
    const other = el("input", { type: "text", required: true, maxlength: "60", autocomplete: "off", dir: "auto", list: "known-things" });
    const known = el("datalist", { id: "known-things" });
    ask("about.list").then(({ things }) => fill(known, things.filter((one) => one.name !== name).map((one) => el("option", { value: one.name }))), () => {});
    other.autofocus = true;
    const join = async () => {
      const said = other.value.replace(/[“”「」\n]/g, " ").trim();
      if (said.length < 2 || said.toLowerCase() === name.toLowerCase()) throw new Error(t("about.join.same"));
      const { entry } = await ask("entries.add", { text: t("about.join.text", { name, other: said }), type: "fact" });
      close();
      const back = () => ask("entries.forget", { id: entry.id }).then(done, (error) => announce(sentence(error)));
      announce(t("about.joined", { name, other: said }), t("do.undo"), back);
      done();
    };
    body.append(form([field(t("about.join.other"), other, t("about.join.hint")), known], t("about.join.do"), join, close));
  });
}

/** One place: a box, its name, and its words; to correct them, a field. */
function placeRow(one, kind) {
  const box = el("input", { type: "checkbox", checked: true });
  const text = kind === "correct" && el("textarea", { rows: "1", value: one.text, "aria-label": one.name, dir: "auto" });
  const node = el(
    "li",
    {},
    el("label", {}, box, el("span", { class: "faint" }, one.name), kind === "forget" && el("span", { class: "entry-text" }, one.text)),
    text,
  );
  const place = { ref: one.ref, text: one.text, ...(one.line && { line: one.line }) };
  return {
    node,
    replace(wrong, right) {
      if (!wrong.trim()) return;
      const escaped = wrong.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
      text.value = right ? one.text.replace(new RegExp(escaped, "gi"), () => right) : one.text;
    },
    value() {
      if (!box.checked) return null;
      if (kind === "forget") return place;
      const words = text.value.trim();
      return words && words !== one.text ? { ...place, new: words } : null;
    },
  };
}

function receipt(made, close) {
  const copy = async (event) => {
    const button = event.currentTarget;
    const { corrected, forgotten, remains } = made;
    const words = JSON.stringify({ at: new Date().toISOString(), corrected, forgotten, remains }, null, 2);
    fill(button, await navigator.clipboard.writeText(words).then(() => t("done.copied")).catch(() => t("done.not.copied")));
  };
  return el(
    "div",
    { class: "stack receipt" },
    el("p", { class: "lead" }, made.corrected > 0 ? tn("about.corrected", made.corrected) : tn("about.forgotten", made.forgotten)),
    made.remains.length > 0
      ? [el("h3", {}, t("about.remains")), el("ul", { class: "mentions" }, made.remains.map((one) => el("li", {}, one)))]
      : el("p", {}, t("about.remains.none")),
    el("p", { class: "faint" }, t("about.copies")),
    el(
      "div",
      { class: "dialog-actions" },
      navigator.clipboard && el("button", { type: "button", class: "quiet", onclick: copy }, t("do.copy")),
      el("button", { type: "button", class: "primary", onclick: close }, t("do.close")),
    ),
  );
}

async function undo({ entry, seq, files }, done) {
  try {
    await ask("about.undo", { entry, seq, files });
    announce(t("about.undone"));
  } catch (error) {
    announce(sentence(error));
  }
  done();
}
