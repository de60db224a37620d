// OpenClaw's builtin memory, in one process: its search manager, without the command line's start of several seconds.
// Usage: node openclaw_driver.mjs WORKSPACE STATE URL MODEL DIMENSIONS, with OPENCLAW naming the package's folder.
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const [workspace, state, url, model] = process.argv.slice(2);
const cfg = {
  agents: { defaults: { workspace } },
  memory: {
    search: {
      provider: "openai-compatible",
      model,
      remote: { baseUrl: url, apiKey: "none" },
      rememberAcrossConversations: false,
    },
  },
};
process.env.HOME = state;
process.env.OPENCLAW_STATE_DIR = path.join(state, "openclaw");
process.env.OPENCLAW_CONFIG_PATH = path.join(state, "openclaw.json");
fs.mkdirSync(process.env.OPENCLAW_STATE_DIR, { recursive: true });
fs.writeFileSync(process.env.OPENCLAW_CONFIG_PATH, JSON.stringify(cfg));

// What OpenClaw prints goes to stderr; answers go to the real stdout.
const answer = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);

const sdk = path.join(process.env.OPENCLAW, "dist", "plugin-sdk", "memory-host-search.js");
let manager;

async function open() {
  const { getActiveMemorySearchManager } = await import(pathToFileURL(sdk));
  const found = await getActiveMemorySearchManager({ cfg, agentId: "main", purpose: "cli" });
  manager = found.manager ?? found;
  if (typeof manager?.search !== "function") throw new Error(found.error ?? "no memory search manager");
}

const operations = {
  async start() {
    await open();
    return {};
  },
  async index() {
    await manager.sync({ reason: "evals", force: true });
    return {};
  },
  async search({ query, limit }) {
    const hits = await manager.search(query, { maxResults: limit, minScore: 0 });
    return { paths: hits.map((hit) => hit.path) };
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const result = await operations[request.op](request).catch((error) => ({ error: String(error.stack ?? error) }));
  answer(`${JSON.stringify(result)}\n`);
}
process.exit(0);
