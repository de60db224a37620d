// Stands in for OpenClaw: loads the built plugin's parts, runs steps from standard input, prints one result per line.
import { pathToFileURL } from "node:url";
import path from "node:path";

const { folder, config, openclaw, steps } = JSON.parse(await new Response(process.stdin).text());
const load = (name) => import(pathToFileURL(path.join(folder, "dist", `${name}.js`)));
const [{ Memories }, { readSettings }, { registerTools }, { createCapability }] = await Promise.all(
  ["memories", "config", "tools", "capability"].map(load),
);

const log = [];
const tools = new Map();
const api = {
  config: openclaw,
  logger: { warn: (line) => log.push(line), info: (line) => log.push(line), error: (line) => log.push(line) },
  runtime: { agent: { resolveAgentWorkspaceDir: (cfg, id) => cfg.agents.entries[id].workspace } },
  registerTool: (factory, { names }) => tools.set(names[0], factory),
};
const memories = new Memories(api, readSettings(config));
registerTools(api, memories);
const { runtime } = createCapability(memories);

const run = {
  tool: async ({ name, args, ctx }) => (await tools.get(name)(ctx).execute("call", args)).details,
  manager: async ({ agentId }) => {
    const { manager, error } = await runtime.getMemorySearchManager({ cfg: openclaw, agentId });
    return { error, status: manager?.status() };
  },
  sync: async () => {
    const { manager } = await runtime.getMemorySearchManager({ cfg: openclaw, agentId: "main" });
    await manager.sync();
    return {};
  },
  authorize: (params) => runtime.authorizeSearchHits({ cfg: openclaw, sandboxed: false, ...params }),
  names: () => [...tools.keys()],
};
for (const step of steps) process.stdout.write(`${JSON.stringify(await run[step.do](step))}\n`);
process.stdout.write(`${JSON.stringify({ log, problem: memories.problem })}\n`);
process.exit(0);
