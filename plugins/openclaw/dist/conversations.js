/** The messages of a conversation as OpenClaw has recorded them, with its marks of who sent them. */
import { readVisibleSessionTranscriptMessageEntries } from "openclaw/plugin-sdk/session-transcript-runtime";
/** Most messages in one call. memoriter recognises those that it has seen before. */
const MAX_MESSAGES = 400;
const MAX_TEXT_CHARS = 200_000;
/** memoriter's tools: their results say which memory or note was written, and whose words were found. */
const OWN = /(^|__)memory(_[a-z]+)?$/;
/** Return the last messages of a session, oldest first. */
export async function readConversation(target) {
    const entries = await readVisibleSessionTranscriptMessageEntries(target);
    return compactAll(entries.map((entry) => entry.message));
}
export function compactAll(messages) {
    return messages.slice(-MAX_MESSAGES).map((message) => compact((message ?? {})));
}
/** Return the part of a message that memoriter needs: words, sender, the names of tools, and what memoriter wrote or found. */
function compact(message) {
    const { role, timestamp, provenance, customType, toolName, toolCallId, details } = message;
    const isSpeech = role === "user" || role === "assistant";
    const inner = details;
    const isNeeded = isSpeech || OWN.test(String(inner?.toolName ?? toolName ?? ""));
    return {
        role,
        content: isNeeded ? blocks(message.content) : [],
        timestamp,
        ...(provenance ? { provenance } : {}),
        ...(customType ? { customType } : {}),
        ...(toolName ? { toolName, toolCallId } : {}),
        ...(inner?.toolName ? { details: { toolName: inner.toolName, toolCallId: inner.toolCallId } } : {}),
        // A message without a mark does not count as the owner's.
        ...(isSpeech ? { __openclaw: marks(message.__openclaw) } : {}),
    };
}
function marks(value) {
    const { senderIsOwner, turnTainted } = (value ?? {});
    return { ...(senderIsOwner === true ? { senderIsOwner } : {}), ...(turnTainted === true ? { turnTainted } : {}) };
}
function blocks(content) {
    if (typeof content === "string")
        return content.slice(0, MAX_TEXT_CHARS);
    if (!Array.isArray(content))
        return [];
    return content.flatMap((block) => {
        if (typeof block?.text === "string")
            return [{ type: block.type, text: block.text.slice(0, MAX_TEXT_CHARS) }];
        return typeof block?.name === "string" ? [{ type: block.type, id: block.id, name: block.name }] : [];
    });
}
