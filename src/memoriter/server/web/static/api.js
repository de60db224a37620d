// Requests to the gateway. An operation is one POST; an error has a message, a code and details.

import { learn } from "./i18n.js";
import { remember } from "./prefs.js";
import { addressAgent, here } from "./router.js";
import { pause } from "./steps.js";

const DEFAULT_AGENT = "main"; // the default name in the settings

let defaultAgent = DEFAULT_AGENT; // a guess until the agents are loaded
let agentName = defaultAgent;
let event = null; // the newest event before the first answer of this agent

export class Failed extends Error {
  constructor(status, body) {
    super(typeof body?.error === "string" ? body.error : "");
    this.status = status;
    this.code = body?.code;
    this.details = body?.details;
  }
}

export function agent() {
  return agentName;
}

/** The id of the event after which the page may have missed some. */
export function firstEvent() {
  return event ?? "";
}

/** Use the agent of an address; empty: the default agent. */
export function chooseAgent(name) {
  agentName = name || defaultAgent;
  event = null;
  addressAgent(inAddress(agentName));
  remember("agent", inAddress(agentName) || null);
}

/** Whether the page shows the agent of an address. */
export function isShown(name) {
  return agentName === (name || defaultAgent);
}

/** The name of an agent in an address. */
export function inAddress(name) {
  return name === defaultAgent ? "" : name;
}

/** Load the agents that this page may see. The name of the agent is a guess until then; this corrects it, and tells the
 *  page if the address names an agent that does not exist. */
export async function agents() {
  const known = await answered(fetch("/v1/agents", { credentials: "same-origin" }));
  const first = known.find((one) => one.default) ?? known[0];
  if (!first) return known;
  const wanted = here().agent;
  defaultAgent = first.name;
  const exists = known.some((one) => one.name === agentName);
  if (exists && isShown(wanted)) return known;
  chooseAgent("");
  if (!exists && wanted) document.dispatchEvent(new CustomEvent("memoriter:agent", { detail: wanted }));
  return known;
}

/** Call an operation. Throws `Failed`, or an AbortError if the signal was aborted. `list` names the long list with which
 *  the answer starts, which is then parsed in steps. */
export async function ask(operation, args = {}, { signal, list } = {}) {
  const request = (name) =>
    fetch(`/v1/agents/${encodeURIComponent(name)}/${operation}`, {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(args),
      signal,
    });
  const guess = agentName;
  try {
    return await answered(request(guess), list);
  } catch (error) {
    if (error.status !== 404) throw error;
    if (guess === agentName) await agents(); // perhaps the agent does not exist
    if (guess === agentName) throw error;
    return answered(request(agentName), list);
  }
}

/** Return a function that calls operations and aborts its earlier call. */
export function newest() {
  let controller = null;
  const call = (operation, args, options = {}) => {
    controller?.abort();
    controller = new AbortController();
    return ask(operation, args, { ...options, signal: controller.signal });
  };
  call.stop = () => controller?.abort();
  return call;
}

/** Return a function that checks whether an answer differs from the one before. Equal answers are not drawn again. */
export function news() {
  let last = "";
  const isNew = (answer) => {
    const now = JSON.stringify(answer);
    const other = now !== last;
    last = now;
    return other;
  };
  isNew.forget = () => (last = ""); // an error is shown now
  return isNew;
}

export function isAborted(error) {
  return error?.name === "AbortError";
}

const STEP_CHARS = 1_000_000;

/** Parse JSON whose first value is a list of flat objects, in steps that do not block the page. */
async function parseInSteps(text, list) {
  const start = `{"${list}":[`;
  const pieces = [];
  let at = text.startsWith(start) ? start.length : text.length;
  for (let cut = 0; cut >= 0 && at + STEP_CHARS < text.length; ) {
    cut = text.indexOf('},{"', at + STEP_CHARS); // never inside a string, where a quote would be escaped
    if (cut < 0) break;
    pieces.push(JSON.parse(`[${text.slice(at, cut)}}]`));
    at = cut + 2;
    await pause();
  }
  if (pieces.length === 0) return JSON.parse(text);
  const rest = JSON.parse(start + text.slice(at));
  return { ...rest, [list]: [...pieces, rest[list]].flat() };
}

async function answered(request, list) {
  let response;
  try {
    response = await request;
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new Failed(0);
  }
  const parsed = list ? response.text().then((text) => parseInSteps(text, list)) : response.json();
  const body = await parsed.catch((error) => {
    if (isAborted(error)) throw error;
    return {};
  });
  if (response.status === 401) document.dispatchEvent(new CustomEvent("memoriter:ended"));
  if (!response.ok || body.error) throw new Failed(response.status, body);
  event ??= response.headers.get("x-memoriter-event");
  learn(body.codes);
  return body;
}
