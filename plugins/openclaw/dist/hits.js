/** Hits of memoriter in the shape of OpenClaw, and which of them a session may see. */
export function originClass(trust) {
    return trust === "owner" || trust === "agent" ? trust : "untrusted";
}
/** Parts of a hit that memoriter leaves out if there is nothing to say. */
const OPTIONAL = ["citation", "heading", "confidence", "level", "supersededBy"];
/** Results asked for when some of them are of another source and will be left out. */
const WIDER = 4;
const DEFAULT_RESULTS = 6;
const MOST_RESULTS = 100;
/** Search the memory of an agent, as a model does. */
export async function search(memories, agentId, query, timeoutMs) {
    const only = query.sources?.length === 1 ? query.sources[0] : undefined;
    const wanted = query.maxResults ?? DEFAULT_RESULTS;
    const args = {
        query: query.query,
        maxResults: Math.min(MOST_RESULTS, only === "memory" ? wanted * WIDER : wanted),
        ...(query.minScore === undefined ? {} : { minScore: query.minScore }),
        ...(only === "sessions" ? { source: "sessions" } : {}),
    };
    const options = { session: query.session, access: "read", repeatable: true, ...(timeoutMs ? { timeoutMs } : {}) };
    const result = await memories.call(agentId, "memory_search", args, options);
    const hits = (result.results ?? []).map(hitOf).filter((hit) => !only || hit.source === only);
    return {
        hits: hits.slice(0, wanted),
        provider: String(result.provider ?? "none"),
        model: String(result.model ?? ""),
        citations: result.citations === true,
        ...(typeof result.notice === "string" ? { notice: result.notice } : {}),
        ...(typeof result.degraded === "string" ? { degraded: result.degraded } : {}),
    };
}
function hitOf(found) {
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
function dateOf(file) {
    const day = /\d{4}-\d{2}-\d{2}/.exec(file)?.[0];
    return (day ? Date.parse(day) : Number.NaN) || 0;
}
/** Keep the session hits that the requester may see: the owner sees all, others only those of their own session. */
export function visible(hits, requester) {
    const isOwner = requester.isOwner ?? isOwnersSession(requester.sessionKey);
    if (isOwner && !requester.sandboxed)
        return hits;
    const own = requester.sessionId;
    return hits.filter((hit) => hit.source !== "sessions" || (own !== undefined && hit.path.includes(own)));
}
/** Whether a session belongs to the owner: a local one, such as `agent:main:main`, and not one of a channel. */
export function isOwnersSession(sessionKey) {
    return !sessionKey || sessionKey.replace(/^agent:[^:]+:/, "").split(":").length === 1;
}
export function modeOf(provider) {
    return provider === "none" ? "fts-only" : "hybrid";
}
export function asText(result, name) {
    const value = result[name];
    return typeof value === "string" ? value : "";
}
