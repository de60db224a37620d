/** What happens around a turn: recall before it, capture after it, a flush before compaction, a summary at the end. */

import type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import { asText } from "./hits.js";
import { Conversations, compact, type Message } from "./conversations.js";
import { agentOf, type Memories } from "./memories.js";
import { Refused } from "./client.js";

type Context = { agentId?: string; sessionKey?: string; sessionId?: string; trigger?: string };

/** Work after a turn may take longer than the turn. */
const AFTER_TIMEOUT_MS = 25_000;
const MAX_QUERY_CHARS = 8_000;
/** Most messages in one call. */
const MAX_SENT = 400;

export function registerHooks(api: OpenClawPluginApi, memories: Memories): void {
  const conversations = new Conversations();
  const { settings } = memories;

  api.on("before_message_write", (event, ctx) => {
    const key = ctx.sessionKey ?? event.sessionKey;
    if (key) conversations.add(key, event.message as unknown as Message);
  });

  if (settings.autoRecall) {
    api.on("before_prompt_build", async (event, ctx) => {
      const origin = ctx.inputProvenance?.kind;
      if (!isPersonsTurn(ctx) || origin === "internal_system" || origin === "inter_session") return;
      if (conversations.ownerSpoke(ctx.sessionKey ?? "") === false) return;
      const query = (event.currentUserMessage ?? event.prompt).trim().slice(0, MAX_QUERY_CHARS);
      const agentId = agentOf(ctx.sessionKey, ctx.agentId);
      if (!query || !memories.isEnabled(agentId)) return;
      const args = { query, ...(ctx.sessionId ? { session: ctx.sessionId } : {}) };
      const recalled = await attempt(api, "recall", () =>
        memories.call(agentId, "recall", args, { session: ctx.sessionKey, repeatable: true }),
      );
      const text = recalled ? asText(recalled, "text") : "";
      return text ? { prependContext: text } : undefined;
    });
  }

  const capture = async (ctx: Context) => {
    const key = ctx.sessionKey ?? "";
    const agentId = agentOf(ctx.sessionKey, ctx.agentId);
    if (!settings.autoCapture || !conversations.hasNew(key) || !memories.isEnabled(agentId)) return;
    const messages = conversations.messages(key);
    const args = { messages: messages.slice(-MAX_SENT), session: ctx.sessionId ?? key, record: settings.recordSessions };
    const options = { session: ctx.sessionKey, timeoutMs: AFTER_TIMEOUT_MS };
    // What could not be captured is sent again after the next turn.
    if (await attempt(api, "capture", () => memories.call(agentId, "capture", args, options))) {
      conversations.markCaptured(key, messages.length);
    }
  };

  api.on("agent_end", async (_event, ctx) => {
    if (isPersonsTurn(ctx)) await capture(ctx);
  });

  /** Write a note about a conversation: what a compaction would lose, or a summary of all of it. */
  const write = async (operation: "flush" | "summarise", sent: unknown[] | undefined, ctx: Context) => {
    const key = ctx.sessionKey ?? "";
    const agentId = agentOf(ctx.sessionKey, ctx.agentId);
    const known = conversations.messages(key);
    const marked = (sent ?? []).some((message) => (message as Message).__openclaw);
    const messages = marked || known.length === 0 ? ((sent ?? []) as Message[]).map(compact) : known;
    if (messages.length === 0 || !memories.isEnabled(agentId)) return;
    const args = { messages: messages.slice(-MAX_SENT), session: ctx.sessionId ?? key };
    await attempt(api, operation, () =>
      memories.call(agentId, operation, args, { session: ctx.sessionKey, timeoutMs: AFTER_TIMEOUT_MS }),
    );
  };

  api.on("before_compaction", async (event, ctx) => {
    await capture(ctx);
    await write("flush", event.messages, ctx);
  });

  api.on("before_reset", async (event, ctx) => {
    await capture(ctx);
    if (settings.summaries) await write("summarise", event.messages, ctx);
    conversations.end(ctx.sessionKey ?? "");
  });
}

/** Whether a person started this turn, and not a schedule, a heartbeat or the host. */
function isPersonsTurn(ctx: Context): boolean {
  return ctx.trigger === undefined || ctx.trigger === "user";
}

/** Return the result; undefined with one line in the log if there is none. */
async function attempt<T>(api: OpenClawPluginApi, what: string, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    // A session that may not use the memory is not a problem to report at each turn.
    const isExpected = error instanceof Refused && error.outcome === "refused";
    const line = `memoriter: ${what}: ${error instanceof Error ? error.message : String(error)}`;
    if (isExpected) api.logger.debug?.(line);
    else api.logger.warn(line);
    return undefined;
  }
}
