// OpenClaw's memory slot as its own pages use it: open, index, search. The settings say which plugin fills the slot.
// Usage: node openclaw_slots.mjs SETTINGS, with OPENCLAW naming the package's folder. One JSON object per line.
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const cfg = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
process.env.OPENCLAW_STATE_DIR = path.dirname(process.argv[2]);
process.env.OPENCLAW_CONFIG_PATH = process.argv[2];

// What OpenClaw prints goes to stderr; answers go to the real stdout.
const answer = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
const sdk = path.join(process.env.OPENCLAW, "dist", "plugin-sdk", "memory-host-search.js");
let manager;

const operations = {
  async open() {
    const { getActiveMemorySearchManager } = await import(pathToFileURL(sdk));
    const found = await getActiveMemorySearchManager({ cfg, agentId: "main", purpose: "cli" });
    if (!found.manager) throw new Error(found.error);
    manager = found.manager;
    return {};
  },
  async index() {
    await manager.sync({ reason: "evals", force: true });
    return {};
  },
  async search({ query }) {
    const started = performance.now();
    const hits = await manager.search(query, { maxResults: 6 });
    return { ms: performance.now() - started, paths: hits.map((hit) => hit.path) };
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const result = await operations[request.op](request).catch((error) => ({ error: String(error.message ?? error) }));
  answer(`${JSON.stringify(result)}\n`);
}
process.exit(0);
