// The texts of the page in the reader's language, and the formatting of numbers and dates.

import { remembered } from "./prefs.js";
import { WORDS } from "./words.js";

const LOCALES = { en: "en-GB", zh: "zh-CN" }; // WORDS has their texts
// Other languages have a file `languages/TAG.json` with texts by key. The index names them.
export const LANGUAGES = [...Object.keys(LOCALES), ...(document.documentElement.dataset.languages ?? "").split(" ").filter(Boolean)];

let current = chosen();
let own = {}; // the texts of a language with a file

function chosen() {
  const kept = remembered("language");
  if (LANGUAGES.includes(kept)) return kept;
  const same = (tag) => LANGUAGES.find((name) => name.toLowerCase() === tag.toLowerCase());
  const wanted = (navigator.languages ?? [navigator.language]).map((tag) => same(tag) ?? same(tag.split("-")[0]));
  return wanted.find(Boolean) ?? "en";
}

export function language() {
  return current;
}

/** The language after this one, for the switch. */
export function nextLanguage() {
  return LANGUAGES[(LANGUAGES.indexOf(current) + 1) % LANGUAGES.length];
}

/** The name of a language in itself. */
export function languageName(name) {
  return new Intl.DisplayNames([name], { type: "language" }).of(name);
}

/** Use a language from now on. Texts that its file does not have are English. */
export async function useLanguage(name) {
  own = name in LOCALES ? {} : await fetch(`/static/languages/${name}.json`).then((found) => found.json()).catch(() => ({}));
  current = name;
  document.documentElement.lang = locale();
}

export function locale() {
  return LOCALES[current] ?? current;
}

/** Add the texts of a view that is loaded later. */
export function addWords(more) {
  Object.assign(WORDS, more);
}

/** Return a text with its placeholders replaced. An unknown key returns its last part, because it may be data. */
export function t(key, values = {}) {
  const text = own[key] ?? WORDS[key]?.[current === "zh" ? 1 : 0] ?? key.slice(key.indexOf(".") + 1);
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Return the text for a count: `key.one` for one, where it exists. Other languages may have `few`, `many` and so on. */
export function tn(key, count) {
  return t(counted(key, count), { n: number(count) });
}

function counted(key, count) {
  const form = key in own ? formatter("PluralRules", {}).select(count) : count === 1 ? "one" : "other";
  if (form === "other") return key; // a key that ends in "other" is another text
  return `${key}.${form}` in (key in own ? own : WORDS) ? `${key}.${form}` : key;
}

// The code and the arguments of the sentences that the gateway has sent, by sentence.
const codes = new Map();
const MAX_CODES = 5000;

/** Remember the codes that came with an answer, so that `translated` can translate its sentences. */
export function learn(known) {
  if (codes.size > MAX_CODES) codes.clear();
  for (const [sentence, one] of Object.entries(known ?? {})) codes.set(sentence, one);
}

/** Return a sentence of the gateway in the reader's language. A sentence without a code is returned unchanged. */
export function translated(sentence) {
  const known = codes.get(sentence);
  return known ? coded(known.code, known.details, sentence) : sentence;
}

/** Return the text of a code. Arguments may have codes too. An unknown code returns the sentence. */
export function coded(code, details, sentence) {
  if (code === "all") return sentences(...details.parts.map(argument));
  const key = `code.${code}`;
  if (!(key in WORDS)) return sentence;
  const values = { message: sentence };
  for (const [name, value] of Object.entries(details ?? {})) values[name] = argument(value);
  if (values.kind) values.kind = t(`event.${values.kind}`);
  if (values.state) values.state = t(`state.${values.state}`);
  const text = t(counted(key, details?.n), values);
  return text.replaceAll("。。", "。").replace(/(?<!\.)\.\.(?!\.)/g, "."); // a reason may be a whole sentence
}

/** Join sentences. Chinese has no space between them. */
export function sentences(...parts) {
  return parts.join(current === "zh" ? "" : " ");
}

function argument(value) {
  if (Array.isArray(value)) return value.map(argument).join(", ");
  if (value?.code !== undefined) return coded(value.code, value.details, value.text);
  return typeof value === "number" ? number(value, 3) : value;
}

// A formatter is expensive to create, and a list needs the same few for every row. Its results repeat, too.
const formatters = new Map();
const results = new Map();
const MAX_RESULTS = 5000;

function formatter(kind, form) {
  const name = `${kind} ${locale()} ${JSON.stringify(form)}`;
  if (!formatters.has(name)) formatters.set(name, new Intl[kind](locale(), form));
  return formatters.get(name);
}

function once(name, format) {
  const key = `${locale()} ${name}`;
  if (results.size > MAX_RESULTS) results.clear();
  if (!results.has(key)) results.set(key, format());
  return results.get(key);
}

export function number(value, digits = 0, { exactly = false } = {}) {
  const form = { maximumFractionDigits: digits, minimumFractionDigits: exactly ? digits : 0 };
  return once(`${value} ${digits} ${exactly}`, () => formatter("NumberFormat", form).format(value));
}

/** Format a count for small spaces: 1.6K; 1.6万. */
export function few(value) {
  const form = { notation: "compact", maximumFractionDigits: 1 };
  return value < 1000 ? number(value) : formatter("NumberFormat", form).format(value);
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, value > 0 ? Math.floor(Math.log10(value) / 3) : 0);
  return `${number(value / 1000 ** step, step ? 1 : 0)} ${units[step]}`;
}

export function day(seconds) {
  return written(seconds, { day: "numeric", month: "short", year: "numeric" });
}

export function moment(seconds) {
  return written(seconds, {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
  });
}

/** The time of a day: 20:24. */
export function clock(seconds) {
  return written(seconds, { hour: "2-digit", minute: "2-digit" });
}

/** Today with its weekday: "Wednesday 18 November". */
export function today() {
  return written(Date.now() / 1000, { weekday: "long", day: "numeric", month: "long" });
}

/** Format a day such as 2026-02-08, and a month such as 2026-02. */
export function dayName(text) {
  return written(new Date(`${text}T12:00`).getTime() / 1000, { day: "numeric", month: "short", year: "numeric" });
}

export function monthName(text) {
  return written(new Date(`${text}-15T12:00`).getTime() / 1000, { month: "long", year: "numeric" });
}

function written(seconds, form) {
  if (!Number.isFinite(seconds) || Math.abs(seconds) > 8.6e12) return "–";
  return formatter("DateTimeFormat", form).format(new Date(seconds * 1000));
}

const TIME_UNITS = [
  ["year", 31_556_952],
  ["month", 2_629_746],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** Format the distance from now in the largest suitable unit. */
export function ago(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const away = seconds - Date.now() / 1000;
  const [unit, size] = TIME_UNITS.find(([, length]) => Math.abs(away) >= length) ?? ["second", 1];
  if (unit === "second" && Math.abs(away) < 45) return t("time.now");
  const count = Math.round(away / size);
  return once(`${count} ${unit}`, () => formatter("RelativeTimeFormat", { numeric: "auto" }).format(count, unit));
}
