/** `openclaw memory`: search, status and index, with the options and the output of OpenClaw's own commands. */

import type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import { SearchManager } from "./capability.js";
import type { Memories } from "./memories.js";

type Program = Parameters<Parameters<OpenClawPluginApi["registerCli"]>[0]>[0]["program"];
type Options = { agent?: string; json?: boolean; query?: string; maxResults?: string; minScore?: string; force?: boolean };

const DESCRIPTOR = { name: "memory", description: "Search, inspect and index the memory", hasSubcommands: true };

export function registerCommands(api: OpenClawPluginApi, memories: Memories): void {
  api.registerCli(({ program }) => addCommands(program, memories), { descriptors: [DESCRIPTOR] });
}

function addCommands(program: Program, memories: Memories): void {
  const memory = program.command("memory").description(DESCRIPTOR.description);
  memory
    .command("search [query]")
    .description("Search notes, sessions and captured memories")
    .option("--query <text>", "what to search for")
    .option("--agent <id>", "agent id (default: the first agent)")
    .option("--max-results <n>", "maximum number of results")
    .option("--min-score <n>", "leave out results with a lower score")
    .option("--json", "print JSON")
    .action((query: string | undefined, options: Options) => run(memories, options, (manager) => printHits(manager, query, options)));
  memory
    .command("status")
    .description("Show what the memory holds and whether it works")
    .option("--agent <id>", "agent id (default: all agents)")
    .option("--deep", "also test the embedder")
    .option("--json", "print JSON")
    .action((options: Options & { deep?: boolean }) => printStatus(memories, options));
  memory
    .command("index")
    .description("Update the index from the files")
    .option("--agent <id>", "agent id (default: the first agent)")
    .option("--force", "rebuild the whole index")
    .action((options: Options) =>
      run(memories, options, async (manager) => {
        await manager.sync({ force: options.force === true });
        print("Memory index updated.");
      }),
    );
}

async function run(memories: Memories, options: Options, work: (manager: SearchManager) => Promise<void>): Promise<void> {
  try {
    await work(await SearchManager.open(memories, options.agent ?? memories.agents()[0] ?? "main"));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (options.json) print(JSON.stringify({ ok: false, error: { type: "cli_error", message } }));
    else process.stderr.write(`${message}\n`);
    process.exitCode = 1;
  } finally {
    memories.close();
  }
}

async function printHits(manager: SearchManager, argument: string | undefined, options: Options): Promise<void> {
  const query = options.query ?? argument;
  if (!query?.trim()) throw new Error("Pass a query: openclaw memory search <query>.");
  const results = await manager.search(query, {
    ...(options.maxResults ? { maxResults: number("--max-results", options.maxResults) } : {}),
    ...(options.minScore ? { minScore: number("--min-score", options.minScore) } : {}),
  });
  if (manager.degraded) process.stderr.write(`Incomplete: ${manager.degraded}\n`);
  if (options.json) print(JSON.stringify({ results }, null, 2));
  else if (results.length === 0) print("No matches.");
  else for (const hit of results) print(`${hit.score.toFixed(3)} ${hit.path}:${hit.startLine}-${hit.endLine}\n${hit.snippet}\n`);
}

function number(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(`${name} must be a number.`);
  return value;
}

async function printStatus(memories: Memories, options: Options & { deep?: boolean }): Promise<void> {
  const statuses: object[] = [];
  for (const agentId of options.agent ? [options.agent] : memories.agents()) {
    await run(memories, options, async (manager) => {
      const embedding = options.deep ? { embedding: await manager.probeEmbeddingAvailability() } : {};
      statuses.push({ agentId, status: manager.status(), ...embedding });
    });
  }
  if (options.json) {
    if (statuses.length > 0) print(JSON.stringify(statuses, null, 2));
    return;
  }
  for (const { agentId, status, embedding } of statuses as { agentId: string; status: Record<string, unknown>; embedding?: object }[]) {
    print(`Memory of ${agentId}: memoriter, ${status.files} files, ${status.chunks} chunks`);
    print(`Workspace: ${status.workspaceDir}`);
    print(`Embedder: ${status.provider} ${status.model}`);
    if (status.fallback) print(`Incomplete: ${(status.fallback as { reason: string }).reason}`);
    if (embedding) print(`Test of the embedder: ${JSON.stringify(embedding)}`);
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
