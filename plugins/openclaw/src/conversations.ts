/** The messages of running conversations, with OpenClaw's marks of who sent them, until memoriter has them. */

export type Message = Record<string, unknown>;
type Conversation = { messages: Message[]; captured: number };

/** Messages kept per conversation. Long ones are captured in parts. */
const MAX_MESSAGES = 600;
const MAX_CONVERSATIONS = 200;
const MAX_TEXT_CHARS = 200_000;

export class Conversations {
  private readonly bySession = new Map<string, Conversation>();

  /** Add a message that OpenClaw is about to write to its transcript. */
  add(sessionKey: string, message: Message): void {
    const conversation = this.bySession.get(sessionKey) ?? { messages: [], captured: 0 };
    this.bySession.delete(sessionKey); // the latest conversation is the last
    this.bySession.set(sessionKey, conversation);
    conversation.messages.push(compact(message));
    while (conversation.messages.length > MAX_MESSAGES) {
      conversation.messages.shift();
      conversation.captured = Math.max(0, conversation.captured - 1);
    }
    if (this.bySession.size > MAX_CONVERSATIONS) this.bySession.delete([...this.bySession.keys()][0] ?? "");
  }

  messages(sessionKey: string): Message[] {
    return [...(this.bySession.get(sessionKey)?.messages ?? [])];
  }

  hasNew(sessionKey: string): boolean {
    const conversation = this.bySession.get(sessionKey);
    return conversation !== undefined && conversation.captured < conversation.messages.length;
  }

  /** Whether the last person who spoke is the owner; undefined if no message says so. */
  ownerSpoke(sessionKey: string): boolean | undefined {
    const marks = this.messages(sessionKey).findLast((message) => message.role === "user")?.__openclaw;
    return marks ? (marks as { senderIsOwner?: unknown }).senderIsOwner === true : undefined;
  }

  markCaptured(sessionKey: string, count: number): void {
    const conversation = this.bySession.get(sessionKey);
    if (conversation) conversation.captured = Math.min(count, conversation.messages.length);
  }

  end(sessionKey: string): void {
    this.bySession.delete(sessionKey);
  }
}

/** Return the part of a message that memoriter needs: words, sender, and the names of tools. */
export function compact(message: Message): Message {
  const { role, timestamp, provenance, customType, toolName, toolCallId, details } = message;
  const isSpeech = role === "user" || role === "assistant";
  const inner = details as { toolName?: unknown; toolCallId?: unknown } | undefined;
  return {
    role,
    content: isSpeech ? blocks(message.content) : [],
    timestamp,
    ...(provenance ? { provenance } : {}),
    ...(customType ? { customType } : {}),
    ...(toolName ? { toolName, toolCallId } : {}),
    ...(inner?.toolName ? { details: { toolName: inner.toolName, toolCallId: inner.toolCallId } } : {}),
    // A message without a mark does not count as the owner's.
    ...(isSpeech ? { __openclaw: marks(message.__openclaw) } : {}),
  };
}

function marks(value: unknown): object {
  const { senderIsOwner, turnTainted } = (value ?? {}) as { senderIsOwner?: unknown; turnTainted?: unknown };
  return { ...(senderIsOwner === true ? { senderIsOwner } : {}), ...(turnTainted === true ? { turnTainted } : {}) };
}

function blocks(content: unknown): unknown {
  if (typeof content === "string") return content.slice(0, MAX_TEXT_CHARS);
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: Message): object[] => {
    if (typeof block?.text === "string") return [{ type: block.type, text: block.text.slice(0, MAX_TEXT_CHARS) }];
    return typeof block?.name === "string" ? [{ type: block.type, id: block.id, name: block.name }] : [];
  });
}
