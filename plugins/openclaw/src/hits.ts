/** Hits of memoriter in the shape of OpenClaw, and which of them a session may see. */

import type { Result } from "./client.js";
import type { Memories } from "./memories.js";

/** The classes of OpenClaw. It has none for what an agent wrote after it had read text from outside. */
export type Trust = "owner" | "agent" | "untrusted";

export function originClass(trust: string): Trust {
  return trust === "owner" || trust === "agent" ? trust : "untrusted";
}
export type Hit = {
  path: string;
  startLine: number;
  endLine: number;
  score: number;
  snippet: string;
  source: "memory" | "sessions";
  citation?: string;
  heading?: string;
  /** The probability that the hit answers, from 0 to 1, and the same in words. */
  confidence?: number;
  level?: "high" | "medium" | "low";
  /** The place of a newer statement, which says otherwise. */
  supersededBy?: string;
  provenance: { originClass: Trust; sessionKind: "interactive" | "unknown"; observedAt: number };
};
export type Found = {
  hits: Hit[];
  provider: string;
  model: string;
  citations: boolean;
  /** What to know before the hits are used, as when nothing is relevant. */
  notice?: string;
  degraded?: string;
};
export type Query = {
  query: string;
  session?: string;
  maxResults?: number;
  minScore?: number;
  sources?: readonly ("memory" | "sessions")[];
};

/** Parts of a hit that memoriter leaves out if there is nothing to say. */
const OPTIONAL = ["citation", "heading", "confidence", "level", "supersededBy"];
/** Results asked for when some of them are of another source and will be left out. */
const WIDER = 4;
const DEFAULT_RESULTS = 6;
const MOST_RESULTS = 100;

/** Search the memory of an agent, as a model does. */
export async function search(memories: Memories, agentId: string, query: Query, timeoutMs?: number): Promise<Found> {
  const only = query.sources?.length === 1 ? query.sources[0] : undefined;
  const wanted = query.maxResults ?? DEFAULT_RESULTS;
  const args = {
    query: query.query,
    maxResults: Math.min(MOST_RESULTS, only === "memory" ? wanted * WIDER : wanted),
    ...(query.minScore === undefined ? {} : { minScore: query.minScore }),
    ...(only === "sessions" ? { source: "sessions" } : {}),
  };
  const options = { session: query.session, access: "read" as const, repeatable: true, ...(timeoutMs ? { timeoutMs } : {}) };
  const result = await memories.call(agentId, "memory_search", args, options);
  const hits = ((result.results ?? []) as Record<string, unknown>[]).map(hitOf).filter((hit) => !only || hit.source === only);
  return {
    hits: hits.slice(0, wanted),
    provider: String(result.provider ?? "none"),
    model: String(result.model ?? ""),
    citations: result.citations === true,
    ...(typeof result.notice === "string" ? { notice: result.notice } : {}),
    ...(typeof result.degraded === "string" ? { degraded: result.degraded } : {}),
  };
}

function hitOf(found: Record<string, unknown>): Hit {
  const isSession = found.source === "sessions";
  return {
    path: String(found.path),
    startLine: Number(found.startLine),
    endLine: Number(found.endLine),
    score: Number(found.score),
    snippet: String(found.snippet),
    // OpenClaw has no source for captured memories.
    source: isSession ? "sessions" : "memory",
    ...OPTIONAL.reduce((more, name) => (found[name] == null ? more : { ...more, [name]: found[name] }), {}),
    provenance: {
      originClass: originClass(String(found.trust)),
      sessionKind: isSession ? "interactive" : "unknown",
      observedAt: dateOf(String(found.path)),
    },
  };
}

function dateOf(file: string): number {
  const day = /\d{4}-\d{2}-\d{2}/.exec(file)?.[0];
  return (day ? Date.parse(day) : Number.NaN) || 0;
}

/** Keep the session hits that the requester may see: the owner sees all, others only those of their own session. */
export function visible<T extends { path: string; source?: string }>(
  hits: T[],
  requester: { sessionKey?: string; sessionId?: string; isOwner?: boolean; sandboxed?: boolean },
): T[] {
  const isOwner = requester.isOwner ?? isOwnersSession(requester.sessionKey);
  if (isOwner && !requester.sandboxed) return hits;
  const own = requester.sessionId;
  return hits.filter((hit) => hit.source !== "sessions" || (own !== undefined && hit.path.includes(own)));
}

/** Whether a session belongs to the owner: a local one, such as `agent:main:main`, and not one of a channel. */
export function isOwnersSession(sessionKey: string | null | undefined): boolean {
  return !sessionKey || sessionKey.replace(/^agent:[^:]+:/, "").split(":").length === 1;
}

export function modeOf(provider: string): "hybrid" | "fts-only" {
  return provider === "none" ? "fts-only" : "hybrid";
}

export function asText(result: Result, name: string): string {
  const value = result[name];
  return typeof value === "string" ? value : "";
}
