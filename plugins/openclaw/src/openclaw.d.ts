/** OpenClaw documents this part of its SDK but ships no types for it. */
declare module "openclaw/plugin-sdk/session-transcript-runtime" {
  export function readVisibleSessionTranscriptMessageEntries(target: {
    agentId: string;
    sessionKey: string;
    sessionId: string;
  }): Promise<{ message: unknown; seq: number }[]>;
}
