// Runs against a gateway: MEMORITER_URL and MEMORITER_TOKEN name it.
import assert from "node:assert/strict"
import { createServer } from "node:http"
import { test } from "node:test"
import { Memoriter, MemoriterError } from "./index.js"

const options = { url: process.env.MEMORITER_URL, token: process.env.MEMORITER_TOKEN }
const memory = new Memoriter(options)

test("what is stored is found and recalled", async () => {
  const stored = await memory.store("Anna prefers green tea over coffee.")
  assert.equal(stored.error, undefined)
  const { results } = await memory.search("green tea", { maxResults: 3 })
  assert.match(results[0].snippet, /green tea/)
  const { text } = await memory.recall("Does Anna prefer green tea or coffee?")
  assert.match(text, /green tea/)
})

test("a conversation is captured, and may be sent twice", async () => {
  const messages = [{ role: "user", content: "My dentist is Dr. Meyer in Ghent." }]
  await memory.capture(messages, { session: "s1" })
  await memory.capture(messages, { session: "s1" })
  const status = await memory.call("memory_stats")
  assert.equal(typeof status, "object")
})

test("errors have a status, a code and a sentence", async () => {
  const refused = await memory.call("memory_search", {}).catch((error) => error)
  assert.ok(refused instanceof MemoriterError)
  assert.ok(refused.status >= 400 && refused.code && refused.message)
  const unknown = await memory.call("no/such operation").catch((error) => error)
  assert.equal(unknown.status, 404)
  const closed = await new Memoriter({ ...options, token: "wrong" }).search("x").catch((error) => error)
  assert.equal(closed.status, 401)
})

test("a gateway that is gone, silent or not JSON is an error too", async () => {
  const gone = await new Memoriter({ url: "http://127.0.0.1:1" }).search("x").catch((error) => error)
  assert.deepEqual([gone.name, gone.status, gone.code], ["MemoriterError", 0, "unreachable"])
  const server = createServer((request, answer) => (request.url.endsWith("recall") ? null : answer.end("<html>")))
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready))
  const other = new Memoriter({ url: `http://127.0.0.1:${server.address().port}/`, timeoutMs: 300 })
  assert.equal((await other.search("x").catch((error) => error)).code, "invalid")
  assert.match((await other.recall("x").catch((error) => error)).message, /did not answer within 300 ms/)
  const stop = new AbortController()
  const waiting = other.call("recall", { query: "x" }, { signal: stop.signal }).catch((error) => error)
  stop.abort(new Error("stopped"))
  assert.equal((await waiting).message, "stopped")
  server.closeAllConnections()
  server.close()
})
