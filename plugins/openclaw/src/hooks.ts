/** What happens around a turn: recall before it, capture after it, a flush before compaction, a summary at the end. */

import type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import { asText } from "./hits.js";
import { compactAll, readConversation } from "./conversations.js";
import { agentOf, type Memories } from "./memories.js";
import { Refused } from "./client.js";

type Context = { agentId?: string; sessionKey?: string; sessionId?: string; trigger?: string };
type PromptContext = Context & {
  inputProvenance?: { kind: string };
  toolAuthority?: { allows: (tool: string) => boolean };
};

/** Work after a turn may take longer than the turn. */
const AFTER_TIMEOUT_MS = 25_000;
const MAX_QUERY_CHARS = 8_000;

export function registerHooks(api: OpenClawPluginApi, memories: Memories): void {
  const { settings } = memories;

  if (settings.autoRecall) {
    const recall = async (event: { prompt: string; currentUserMessage?: string }, ctx: PromptContext) => {
      const origin = ctx.inputProvenance?.kind;
      if (!isPersonsTurn(ctx) || origin === "internal_system" || origin === "inter_session") return;
      // A turn that may not search the memory does not receive it either.
      if (!ctx.toolAuthority?.allows("memory_search")) return;
      const query = (event.currentUserMessage ?? event.prompt).trim().slice(0, MAX_QUERY_CHARS);
      const agentId = agentOf(ctx.sessionKey, ctx.agentId);
      if (!query || !memories.isEnabled(agentId)) return;
      const args = { query, ...(ctx.sessionId ? { session: ctx.sessionId } : {}) };
      const recalled = await attempt(api, "recall", () =>
        memories.call(agentId, "recall", args, { session: ctx.sessionKey, repeatable: true }),
      );
      const text = recalled ? asText(recalled, "text") : "";
      return text ? { prependContext: text } : undefined;
    };
    api.on("before_prompt_build", recall, { requiresToolAuthority: true });
  }

  /** Call an operation with the messages of a conversation. */
  const send = async (operation: "capture" | "flush" | "summarise", ctx: Context, known: readonly unknown[] = [], more = {}) => {
    const { sessionKey, sessionId } = ctx;
    const agentId = agentOf(sessionKey, ctx.agentId);
    if (!sessionKey || !sessionId || !memories.isEnabled(agentId)) return;
    await attempt(api, operation, async () => {
      const messages = known.length > 0 ? compactAll(known) : await readConversation({ agentId, sessionKey, sessionId });
      if (messages.length === 0) return;
      const args = { messages, session: sessionId, ...more };
      await memories.call(agentId, operation, args, { session: sessionKey, timeoutMs: AFTER_TIMEOUT_MS });
    });
  };
  const capture = async (ctx: Context, known: readonly unknown[] = []) => {
    // The whole conversation is sent each time, so a turn that could not be captured is captured with the next one.
    if (settings.autoCapture) await send("capture", ctx, known, { record: settings.recordSessions });
  };

  api.on("agent_end", async (_event, ctx) => {
    if (isPersonsTurn(ctx)) await capture(ctx);
  });

  api.on("before_compaction", async (_event, ctx) => {
    await capture(ctx);
    await send("flush", ctx);
  });

  api.on("before_reset", async (event, ctx) => {
    await capture(ctx, event.messages);
    if (settings.summaries) await send("summarise", ctx, event.messages);
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
