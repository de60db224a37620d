// Asks the gateway. One operation is one POST; what goes wrong is one sentence.

import { learn } from "./i18n.js";
import { remember, remembered } from "./prefs.js";

const FIRST_AGENT = "main"; // the name that settings give unless the owner chooses another

let agentName = remembered("agent") ?? FIRST_AGENT;

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

export function chooseAgent(name) {
  agentName = name;
  remember("agent", name);
}

/** The agents that may be seen here. Until they were asked for, the name of ours is a guess; here it is put right. */
export async function agents() {
  const known = await answered(fetch("/v1/agents", { credentials: "same-origin" }));
  if (known.length > 0 && !known.some((one) => one.name === agentName)) {
    chooseAgent((known.find((one) => one.default) ?? known[0]).name);
  }
  return known;
}

/** Ask for an operation; raises `Failed`, or the browser's AbortError when the signal was given up. */
export async function ask(operation, args = {}, { signal } = {}) {
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
    return await answered(request(guess));
  } catch (error) {
    if (error.status !== 404) throw error;
    if (guess === agentName) await agents(); // what is not there may be the agent
    if (guess === agentName) throw error;
    return answered(request(agentName));
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
  const isNew = (answer) => {
    const now = JSON.stringify(answer);
    const other = now !== last;
    last = now;
    return other;
  };
  isNew.forget = () => (last = ""); // a failure stands in its place now
  return isNew;
}

export function givenUp(error) {
  return error?.name === "AbortError";
}

async function answered(request) {
  let response;
  try {
    response = await request;
  } catch (error) {
    if (givenUp(error)) throw error;
    throw new Failed(0);
  }
  const body = await response.json().catch((error) => {
    if (givenUp(error)) throw error;
    return {};
  });
  if (response.status === 401) document.dispatchEvent(new CustomEvent("memoriter:ended"));
  if (!response.ok || body.error) throw new Failed(response.status, body);
  learn(body.codes);
  return body;
}
