// Asks the gateway. One operation is one POST; what goes wrong is one sentence.

import { remember, remembered } from "./prefs.js";

const FIRST_AGENT = "main"; // the name that settings give unless the owner chooses another

let agentName = remembered("agent") ?? FIRST_AGENT;

export class Failed extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export function agent() {
  return agentName;
}

export function chooseAgent(name) {
  agentName = name;
  remember("agent", name);
}

/** The agents that may be seen here. */
export async function agents() {
  const found = await answered(fetch("/v1/agents", { credentials: "same-origin" }));
  return Array.isArray(found) ? found : (found.agents ?? []);
}

/** Ask for an operation; raises `Failed`, or the browser's AbortError when the signal was given up. */
export async function ask(operation, args = {}, { signal } = {}) {
  const request = () =>
    fetch(`/v1/agents/${encodeURIComponent(agentName)}/${operation}`, {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(args),
      signal,
    });
  try {
    return await answered(request());
  } catch (error) {
    // The name is only a guess until the list of agents was seen; a wrong one costs two requests, once.
    if (error.status !== 404 || !(await corrected())) throw error;
    return answered(request());
  }
}

/** A caller whose newest question makes the earlier ones void: they are given up, not queued. */
export function newest() {
  let controller = null;
  const call = (operation, args) => {
    controller?.abort();
    controller = new AbortController();
    return ask(operation, args, { signal: controller.signal });
  };
  call.stop = () => controller?.abort();
  return call;
}

/** Tells whether an answer says anything else than the one before: what is the same need not be drawn again. */
export function news() {
  let last = "";
  return (answer) => {
    const now = JSON.stringify(answer);
    const other = now !== last;
    last = now;
    return other;
  };
}

export function givenUp(error) {
  return error?.name === "AbortError";
}

let seen = false;

async function corrected() {
  if (seen) return false;
  const known = await agents();
  seen = true;
  if (known.length === 0 || known.some((one) => one.name === agentName)) return false;
  chooseAgent((known.find((one) => one.default) ?? known[0]).name);
  document.dispatchEvent(new CustomEvent("recollect:agent"));
  return true;
}

async function answered(request) {
  let response;
  try {
    response = await request;
  } catch (error) {
    if (givenUp(error)) throw error;
    throw new Failed(0, "");
  }
  const body = await response.json().catch((error) => {
    if (givenUp(error)) throw error;
    return {};
  });
  if (response.status === 401) document.dispatchEvent(new CustomEvent("recollect:ended"));
  if (!response.ok)
    throw new Failed(response.status, sentence(body) || `${response.status} ${response.statusText}`);
  if (body.error) throw new Failed(response.status, sentence(body));
  return body;
}

function sentence(body) {
  return typeof body?.error === "string" ? body.error : "";
}
