// Operate: agents and the programs that run them, tokens, backups, the way to another machine, and settings. This view is
// loaded when it is opened first.

import { ask, isAborted, newest } from "../api.js";
import { ask as dialog } from "../dialogs.js";
import { el, fill, refill, withCode } from "../dom.js";
import { form } from "../forms.js";
import { addWords, bytes, moment, number, t, tn } from "../i18n.js";
import { announce, failure, loading, sentence } from "../notices.js";
import { choice, field, programHead, segments, when } from "../parts.js";
import { OPERATE_WORDS } from "./operate_words.js";

addWords(OPERATE_WORDS);

export function operateView(main) {
  const get = newest();
  const place = el("div", { class: "operate" });
  fill(main, programHead("operate"), place);

  async function load({ quiet = false } = {}) {
    if (!quiet) fill(place, loading());
    try {
      const { agents, hosts } = await get("hosts.list");
      const { tokens } = await get("tokens.list");
      const { backups } = await get("backups.list");
      const { settings, path } = await get("settings.list");
      refill(place, programs(agents, hosts), tokenCard(tokens, agents), backupCard(backups), moveCard(), settingsCard(settings, path));
    } catch (error) {
      if (!isAborted(error)) fill(place, failure(error, () => load()));
    }
  }

  /** Do something, say what was done, and show the result. */
  const act = async (operation, given, said) => {
    try {
      const done = await ask(operation, given);
      announce(said(done));
    } catch (error) {
      announce(sentence(error));
    }
    return load({ quiet: true });
  };

  function tokenCard(tokens, agents) {
    return card(
      "tokens",
      tokens.length > 0 &&
        rows(
          tokens.map((one) => [
            one.id,
            [el("b", {}, one.name || one.id), t(`access.${one.access}`), one.agents.length > 0 ? one.agents.join(", ") : t("tokens.all.agents"), [t("entry.created"), " ", when(one.createdAt)]],
            button("revoke", t("tokens.revoke"), () => revoke(one), "quiet danger-text"),
          ]),
        ),
      button("token", t("tokens.new"), () => newToken(agents, () => load({ quiet: true }))),
    );
  }

  function revoke(one) {
    dialog(t("tokens.revoke.title", { name: one.name || one.id }), (body, close) => {
      const run = async () => {
        await ask("tokens.revoke", { id: one.id });
        close();
        announce(t("tokens.revoked", { name: one.name || one.id }));
        load({ quiet: true });
      };
      body.append(form([el("p", {}, t("tokens.revoke.hint"))], t("tokens.revoke"), run, close, { danger: true }));
    });
  }

  function remove({ name, at }) {
    dialog(t("backups.delete.title", { at: moment(at) }), (body, close) => {
      const run = async () => {
        await ask("backups.remove", { name });
        close();
        announce(t("backups.deleted"));
        load({ quiet: true });
      };
      body.append(form([el("p", {}, t("backups.delete.hint"))], t("backups.delete"), run, close, { danger: true }));
    });
  }

  function backupCard(backups) {
    const make = async (event) => {
      event.currentTarget.disabled = true;
      await act("backups.create", {}, (made) => t("backups.made", { name: made.name, files: tn("count.files", made.files), notes: number(made.notes) }));
    };
    const check = ({ name }) => act("backups.check", { name }, contents);
    return card(
      "backups",
      backups.length > 0 &&
        rows(
          backups.map((one) => [
            one.name,
            [el("b", {}, moment(one.at)), bytes(one.bytes)],
            button("check", t("backups.check"), () => check(one)),
            button("download", t("export.open"), () => download(one)),
            button("restore", t("backups.restore"), () => restoring(one, () => load({ quiet: true }))),
            button("delete", t("backups.delete"), () => remove(one), "quiet danger-text"),
          ]),
        ),
      button("backup", t("backups.make"), make, "primary"),
    );
  }

  function settingsCard(settings, path) {
    const change = (one, value) => {
      const put = (wanted) => ask("settings.set", { key: one.key, value: String(wanted) });
      const back = () => put(one.value).then(() => load({ quiet: true }), (error) => announce(sentence(error)));
      return put(value)
        .then(() => announce(t("settings.saved", { name: t(`setting.${one.key}`) }), t("do.undo"), back))
        .catch((error) => announce(sentence(error)))
        .then(() => load({ quiet: true }));
    };
    const row = (one) => el("li", { "data-id": one.key }, field(t(`setting.${one.key}`), control(one, change), [t(`setting.${one.key}.why`), one.setBy && ` ${t("settings.set.by", { by: one.setBy })}`]));
    return card("settings", el("ul", { class: "setting-list" }, settings.map(row)), el("p", { class: "hint" }, t("settings.file"), " ", el("code", {}, path)));
  }

  return {
    show: () => load(),
    actions: () => [...place.querySelectorAll("[data-do=token], [data-do=backup]")].map((one) => ({ text: one.textContent, run: () => one.click() })),
    close: () => get.stop(),
  };
}

const card = (name, ...children) => el("section", { class: "card", "data-card": name }, el("h2", {}, t(`operate.${name}`)), el("p", { class: "hint" }, withCode(t(`operate.${name}.hint`))), children);

const button = (name, text, onclick, looks = "quiet") => el("button", { type: "button", class: looks, "data-do": name, onclick }, text);

/** Lines of a card: an id, what it says, and buttons. */
const rows = (lines) => el("ul", { class: "operate-rows" }, lines.map(([id, said, ...buttons]) => el("li", { "data-id": id }, el("p", {}, said.filter(Boolean).map((one) => el("span", {}, one))), buttons)));

/** A command to run in a terminal, with a button that copies it. */
function command(text) {
  const copy = async (event) => {
    const one = event.currentTarget;
    fill(one, await navigator.clipboard.writeText(text).then(() => t("done.copied")).catch(() => t("done.not.copied")));
  };
  return el("div", { class: "command" }, el("pre", { tabindex: "0" }, el("code", {}, text)), navigator.clipboard && button("copy", t("do.copy.text"), copy));
}

function programs(agents, hosts) {
  const last = (text, at) => at && el("span", {}, `${t(text)} `, when(at));
  const host = (one) => [
    one.host,
    [el("b", {}, one.title), el("span", { class: "label", "data-name": one.state === "connected" ? "active" : "staged" }, t(`host.${one.state}`)), last("host.recalled", one.recalled), last("host.captured", one.captured)],
    one.state !== "connected" && command(`memoriter install ${one.host}`),
  ];
  const agent = (one) => [one.name, [el("b", {}, one.name), one.workspace, last("host.recalled", one.recalled)]];
  return card(
    "hosts",
    el("h3", {}, t("operate.agents")),
    rows(agents.map(agent)),
    el("h3", {}, t("operate.programs")),
    hosts.length > 0 ? rows(hosts.map(host)) : el("p", { class: "hint" }, t("operate.programs.none")),
  );
}

/** Ask for a name and limits, create a token, and show it once. */
function newToken(agents, done) {
  dialog(t("tokens.new"), (body, close) => {
    let access = "write";
    const name = el("input", { type: "text", required: true, maxlength: "100", autocomplete: "off" });
    const which = choice([["", t("tokens.all.agents")], ...agents.map((one) => [one.name, one.name])], "");
    const levels = el("div", { class: "field" });
    const draw = () => refill(levels, el("span", { class: "hint" }, t("tokens.access")), segments(t("tokens.access"), ["read", "write"].map((one) => [one, t(`access.${one}`)]), access, (one) => ((access = one), draw())));
    draw();
    name.autofocus = true;
    const create = async () => {
      const { token } = await ask("tokens.create", { name: name.value.trim(), access, agents: which.value ? [which.value] : [] });
      const ready = el("button", { type: "button", class: "primary", onclick: close }, t("do.close"));
      fill(body, el("div", { class: "stack" }, el("p", {}, t("tokens.once")), command(token), el("div", { class: "dialog-actions" }, ready)));
      ready.focus();
      done();
    };
    body.append(form([field(t("tokens.name"), name, t("tokens.name.hint")), levels, field(t("tokens.agents"), which)], t("tokens.create"), create, close));
  });
}

/** Put the parts of a backup together and save the file. */
async function download({ name, bytes: size }) {
  try {
    const parts = [];
    for (let offset = 0; offset !== null; ) {
      const { data, next } = await ask("backups.read", { name, offset });
      const text = atob(data);
      const part = new Uint8Array(text.length);
      for (let at = 0; at < part.length; at++) part[at] = text.charCodeAt(at); // much faster than a call for each byte
      parts.push(part);
      offset = next;
      announce(t("backups.loading", { done: bytes(offset ?? size), total: bytes(size) }));
    }
    const link = el("a", { download: name });
    link.href = URL.createObjectURL(new Blob(parts, { type: "application/zip" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    announce(t("backups.saved", { name }));
  } catch (error) {
    announce(sentence(error));
  }
}

/** Say what a backup contains, and restore it. The gateway restarts meanwhile, and requests wait for it. */
function restoring({ name, at }, done) {
  dialog(t("backups.restore.title", { at: moment(at) }), async (body, close) => {
    fill(body, loading());
    const found = await ask("backups.check", { name }).catch((error) => fill(body, failure(error, () => (close(), restoring({ name, at }, done)))));
    if (!found) return;
    const trusted = el("input", { type: "checkbox", required: true });
    const asked = found.brings.length > 0 && [el("p", {}, t("backups.brings")), el("ul", {}, found.brings.map((one) => el("li", {}, el("code", {}, one)))), el("label", {}, trusted, " ", t("backups.trusted"))];
    const run = async () => {
      await ask("backups.restore", { name, accept: trusted.checked });
      const { error, before } = await restored(name);
      if (error) throw new Error(error);
      close();
      announce(t("backups.restored", { name: before }));
      done();
    };
    const said = [el("p", {}, contents(found)), el("p", { class: "hint" }, t("backups.restore.hint"))];
    fill(body, form([said, asked].flat().filter(Boolean), t("backups.restore.now"), run, close, { danger: true }));
    body.querySelector("[type=submit]").focus();
  });
}

const contents = (found) => t("backups.checked", { files: tn("count.files", found.files), notes: number(found.notes), agents: found.agents.join(", ") });

/** Ask until the gateway has restored a backup. A request may fail while the gateway shuts down. */
async function restored(name) {
  for (;;) {
    const last = await ask("backups.list").then((found) => found.restored, (error) => (error.status === 401 ? Promise.reject(error) : null));
    if (last?.name === name) return last;
    await new Promise((ready) => setTimeout(ready, 200));
  }
}

function moveCard() {
  const steps = [[t("move.backup")], [t("move.install"), command("pip install memoriter")], [t("move.restore"), command("memoriter restore memoriter-….zip")], [t("move.connect"), command("memoriter install")]];
  return card("move", el("ol", { class: "steps" }, steps.map((one) => el("li", {}, one.map((part) => (typeof part === "string" ? el("p", {}, part) : part))))));
}

/** The control of a setting. */
function control(one, change) {
  const disabled = Boolean(one.setBy);
  if (one.kind === "switch") return choice([["true", t("health.yes")], ["false", t("health.no")]], String(one.value), (value) => change(one, value), { disabled });
  if (one.kind === "choice") return choice(one.choices.map((name) => [name, t(`setting.${one.key}.${name}`)]), one.value, (value) => change(one, value), { disabled });
  const input = el("input", { type: "number", value: String(one.value), min: one.least, max: one.most, disabled, onchange: () => input.reportValidity() && input.value !== "" && change(one, input.value) });
  return input;
}
