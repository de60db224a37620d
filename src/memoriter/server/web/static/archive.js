// The files of an import: the archives that chat programs send, and long files in parts that the gateway accepts.

import { t } from "./i18n.js";

const PART_CHARS = 1_000_000; // at most 3 MB; the gateway accepts 4 MB by default
const STEP_CHARS = 2_000_000; // read without a pause
const CONVERSATIONS = /(?:^|\/)conversations[^/]*\.json$/;
const MAX_BYTES = 2 ** 29; // of one file, unpacked

// Numbers of the ZIP format.
const FILE = 0x04034b50;
const ENTRY = 0x02014b50;
const END = 0x06054b50;
const END_BYTES = 22;
const MAX_COMMENT = 0xffff;
const STORED = 0;
const DEFLATED = 8;

/** The texts of a file: those of the conversations in an archive, or its own. */
export async function textsOf(file) {
  const start = await bytes(file, 0, 4);
  if (start.byteLength < 4 || start.getUint32(0, true) !== FILE) return [await file.text()];
  const found = (await entriesOf(file)).filter(({ name }) => CONVERSATIONS.test(name));
  if (found.length === 0) throw new Error(t("import.archive.none"));
  return Promise.all(found.map((entry) => unpacked(file, entry)));
}

const bytes = async (file, from, to) => new DataView(await file.slice(from, to).arrayBuffer());

/** The directory of an archive, which is at its end. */
async function entriesOf(file) {
  const tail = Math.max(0, file.size - END_BYTES - MAX_COMMENT);
  const end = await bytes(file, tail, file.size);
  let at = end.byteLength - END_BYTES;
  while (at >= 0 && end.getUint32(at, true) !== END) at--;
  if (at < 0) throw new Error(t("import.archive.damaged"));
  const from = end.getUint32(at + 16, true);
  const directory = await bytes(file, from, from + end.getUint32(at + 12, true));
  const entries = [];
  for (let place = 0; place + 46 <= directory.byteLength && directory.getUint32(place, true) === ENTRY; ) {
    const length = directory.getUint16(place + 28, true);
    entries.push({
      name: new TextDecoder().decode(new Uint8Array(directory.buffer, place + 46, length)),
      encrypted: directory.getUint16(place + 8, true) & 1,
      method: directory.getUint16(place + 10, true),
      packed: directory.getUint32(place + 20, true),
      size: directory.getUint32(place + 24, true),
      offset: directory.getUint32(place + 42, true),
    });
    place += 46 + length + directory.getUint16(place + 30, true) + directory.getUint16(place + 32, true);
  }
  return entries;
}

async function unpacked(file, { encrypted, method, packed, size, offset }) {
  if (encrypted || ![STORED, DEFLATED].includes(method) || size > MAX_BYTES) throw new Error(t("import.archive.damaged"));
  const head = await bytes(file, offset, offset + 30);
  if (head.byteLength < 30 || head.getUint32(0, true) !== FILE) throw new Error(t("import.archive.damaged"));
  const from = offset + 30 + head.getUint16(26, true) + head.getUint16(28, true);
  const data = file.slice(from, from + packed);
  if (method === STORED) return data.text();
  try {
    return await new Response(data.stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
  } catch {
    throw new Error(t("import.archive.damaged"));
  }
}

/** Split a text into parts that fit into a request. Each part is a file of the same kind. */
export async function partsOf(text) {
  if (text.length <= PART_CHARS) return [text];
  const start = text.search(/\S/);
  if (text[start] === "[") {
    const records = await recordsOf(text, start);
    return records ? joined(records, (some) => `[${some.join(",")}]`) : [text];
  }
  const lines = text.split("\n");
  return isJson(lines[0]) ? joined(lines, (some) => some.join("\n")) : [text];
}

function joined(records, join) {
  const parts = [];
  let some = [];
  let size = 0;
  for (const record of records) {
    if (size + record.length > PART_CHARS && some.length > 0) {
      parts.push(join(some));
      some = [];
      size = 0;
    }
    some.push(record);
    size += record.length;
  }
  return [...parts, join(some)];
}

function isJson(text) {
  try {
    return Boolean(JSON.parse(text));
  } catch {
    return false;
  }
}

/** The records of a JSON list, unparsed; null if it is damaged. A list of 100 MB is read in steps. */
async function recordsOf(text, start) {
  const records = [];
  let depth = 0;
  let quoted = false;
  let from = start + 1;
  let pause = start + STEP_CHARS;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (quoted) {
      if (char === "\\") at++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "[" || char === "{") depth++;
    else if ((char === "," && depth === 1) || char === "]" || char === "}") {
      if (char !== ",") depth--;
      if (char === "," || depth === 0) {
        records.push(text.slice(from, at));
        from = at + 1;
      }
      if (depth === 0) return records;
    }
    if (at < pause) continue;
    pause = at + STEP_CHARS;
    await new Promise((done) => setTimeout(done));
  }
  return null;
}
