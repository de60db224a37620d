// Written by `memoriter install opencode`, which also replaces it. `memoriter uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = ["memoriter"]
const SECONDS = 10

/** Call a hook of memoriter. It never fails: without memory the agent still answers. */
function hook(event, sent) {
  return new Promise((resolve) => {
    const finish = (output) => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(output).context ?? "")
      } catch {
        resolve("")
      }
    }
    const timer = setTimeout(() => finish(""), SECONDS * 1000)
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", "opencode", event, "--server", "memoriter"], {
      stdio: ["pipe", "pipe", "ignore"],
      windowsHide: true,
    })
    let output = ""
    child.on("error", () => finish(""))
    child.stdout.on("data", (data) => (output += data))
    child.on("close", () => finish(output))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(sent))
  })
}

/** The words of a message, without what plugins and files added. */
function words(parts) {
  const spoken = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
  return spoken.map((part) => part.text).join("\n")
}

/** A message in the form of chat APIs, with the names of the tools that were called, and the results of our own. */
function spokenAndFound({ info, parts }) {
  const calls = parts.filter((part) => part.type === "tool")
  const ours = calls.filter((part) => part.tool.startsWith("memoriter_") && part.state?.output)
  return [
    {
      id: info.id,
      role: info.role,
      content: words(parts),
      tool_calls: calls.map((part) => ({ id: part.callID, name: part.tool, arguments: part.state?.input })),
    },
    ...ours.map((part) => ({ id: part.id, role: "tool", tool_call_id: part.callID, content: part.state.output })),
  ]
}

export const Memoriter = async ({ client, directory }) => {
  const begun = new Set()
  const children = new Map()
  const captured = new Map()

  /** Whether a session belongs to a sub-agent, whose prompts an agent writes. */
  async function isChild(id) {
    if (!children.has(id)) {
      const found = await client.session.get({ path: { id } })
      children.set(id, Boolean(found.data?.parentID))
    }
    return children.get(id)
  }

  async function messages(id) {
    return (await client.session.messages({ path: { id } })).data ?? []
  }

  /** Send the conversation, unless its last message was sent already. */
  async function capture(id) {
    if (await isChild(id)) return
    const finished = (await messages(id)).filter(({ info }) => info.role === "user" || info.time?.completed)
    const last = finished.at(-1)?.info.id
    if (!last || captured.get(id) === last) return
    captured.set(id, last)
    await hook("Stop", { session_id: id, cwd: directory, messages: finished.flatMap(spokenAndFound) })
  }

  return {
    "chat.message": async ({ sessionID }, output) => {
      try {
        if (await isChild(sessionID)) return
        const sent = { session_id: sessionID, cwd: directory, prompt: words(output.parts) }
        const found = []
        if (!begun.has(sessionID)) {
          begun.add(sessionID)
          const earlier = (await messages(sessionID)).some(({ info }) => info.id !== output.message.id)
          found.push(await hook("SessionStart", { ...sent, source: earlier ? "resume" : "startup" }))
        }
        found.push(await hook("UserPromptSubmit", sent))
        const text = found.filter(Boolean).join("\n")
        const last = output.parts.at(-1)
        if (!text || !last) return
        output.parts.push({
          id: `${last.id}m`,
          sessionID,
          messageID: output.message.id,
          type: "text",
          text,
          synthetic: true,
        })
      } catch {
        // A prompt without memory is better than no prompt.
      }
    },
    event: async ({ event: { type, properties } }) => {
      const { role, time, finish, sessionID } = properties.info ?? {}
      // `opencode run` ends as soon as its session is idle, so an answer is captured when it is complete.
      const isAnswer = type === "message.updated" && role === "assistant" && time?.completed && finish !== "tool-calls"
      try {
        if (isAnswer) await capture(sessionID)
        if (type === "session.idle") await capture(properties.sessionID)
      } catch {
        // The next event sends the whole conversation again.
      }
    },
  }
}
