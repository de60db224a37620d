// The client of a memoriter gateway. It has no dependencies: it needs `fetch`, as Node 20 and browsers have it.

/** An error of the gateway, or of the way to it. */
export class MemoriterError extends Error {
  constructor(message, { status = 0, code = "unreachable", details = {}, cause } = {}) {
    super(message, { cause })
    this.name = "MemoriterError"
    this.status = status
    this.code = code
    this.details = details
  }
}

/** The memory of one agent. */
export class Memoriter {
  #headers
  #timeout
  #url

  constructor({ url = "http://127.0.0.1:8377", token, agent = "main", session, timeoutMs = 30_000 } = {}) {
    this.#url = `${url.replace(/\/+$/, "")}/v1/agents/${encodeURIComponent(agent)}/`
    this.#timeout = timeoutMs
    this.#headers = { "Content-Type": "application/json", Accept: "application/json" }
    if (token) this.#headers.Authorization = `Bearer ${token}`
    if (session) this.#headers["X-Memoriter-Session"] = session
  }

  /** Run an operation of the gateway and return its result. */
  async call(operation, input = {}, { signal } = {}) {
    const limit = AbortSignal.timeout(this.#timeout)
    const request = {
      method: "POST",
      headers: this.#headers,
      body: JSON.stringify(input),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    }
    let answer
    let text
    try {
      answer = await fetch(this.#url + encodeURIComponent(operation), request)
      text = await answer.text()
    } catch (cause) {
      if (signal?.aborted) throw signal.reason
      const why = limit.aborted ? `did not answer within ${this.#timeout} ms` : "cannot be reached"
      throw new MemoriterError(`The gateway at ${this.#url} ${why}.`, { cause })
    }
    const result = parse(text)
    if (result === undefined) {
      throw new MemoriterError(`The answer (${answer.status}) is not JSON.`, { status: answer.status, code: "invalid" })
    }
    if (!answer.ok || result.error) {
      const { error, code, details } = result
      throw new MemoriterError(error ?? `The gateway answered ${answer.status}.`, { status: answer.status, code, details })
    }
    return result
  }

  /** Search notes, sessions and entries. */
  search(query, options = {}) {
    return this.call("memory_search", { query, ...options })
  }

  /** Return the block of memories about a query, for the prompt of an agent. */
  recall(query, options = {}) {
    return this.call("recall", { query, ...options })
  }

  /** Store one statement. */
  store(text, options = {}) {
    return this.call("memory_store", { text, ...options })
  }

  /** Learn from a conversation. The whole conversation may be sent each time. */
  capture(messages, options = {}) {
    return this.call("capture", { messages, ...options })
  }
}

function parse(text) {
  try {
    const value = JSON.parse(text)
    return typeof value === "object" && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
