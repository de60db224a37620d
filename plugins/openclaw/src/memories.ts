/** The memory of each agent: one process or gateway agent per OpenClaw agent, with the same name and workspace. */

import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";
import type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import { GatewayClient, ProcessClient, Unavailable, type CallOptions, type Client, type Result } from "./client.js";
import type { Settings } from "./config.js";

type Config = OpenClawPluginApi["config"];
type Health = { reportFailure: (error: unknown) => void; clearFailure: () => void };

export class Memories {
  private readonly clients = new Map<string, Client>();
  private health: Health | undefined;

  constructor(
    private readonly api: OpenClawPluginApi,
    readonly settings: Settings,
  ) {}

  /** Why no memory can work with these settings, found without starting anything. */
  get problem(): string | undefined {
    if (this.settings.problem) return `Memory is unavailable: ${this.settings.problem}`;
    const [program = ""] = this.settings.command;
    if (this.settings.url || isProgram(program)) return undefined;
    return (
      `Memory is unavailable: the command ${program} was not found. ` +
      "Install it with `pip install memoriter` and run `memoriter install openclaw` again."
    );
  }

  get config(): Config {
    return (this.api.runtime.config?.current?.() as Config | undefined) ?? this.api.config;
  }

  /** Call an operation for an agent. Throws `Unavailable` or `Refused`, both with one sentence. */
  async call(agentId: string, operation: string, args: object, options: Partial<CallOptions> = {}): Promise<Result> {
    return await this.client(agentId).call(operation, args, { timeoutMs: this.settings.timeoutMs, ...options });
  }

  private client(agentId: string): Client {
    if (this.settings.problem) throw new Unavailable(`Memory is unavailable: ${this.settings.problem}`);
    const known = this.clients.get(agentId);
    if (known) return known;
    const client = this.create(agentId);
    this.clients.set(agentId, client);
    return client;
  }

  private create(agentId: string): Client {
    const { url, token, home, command } = this.settings;
    const onChange = (problem: string | undefined) => this.report(problem);
    if (!this.hasAgent(agentId)) throw new Unavailable(`Memory is unavailable: OpenClaw has no agent ${agentId}.`);
    if (url && token) return new GatewayClient(url, token, agentId, onChange);
    const workspace = this.workspace(agentId);
    if (!isFolder(workspace)) {
      throw new Unavailable(`Memory is unavailable: the workspace ${workspace} of the agent ${agentId} does not exist.`);
    }
    const options = [...(home ? ["--home", home] : []), "--agent", agentId, "--workspace", workspace];
    return new ProcessClient([...command, ...options, "serve", "--stdio"], this.api.logger, onChange);
  }

  /** Names of the agents in OpenClaw's settings. */
  agents(): string[] {
    const { entries, list } = (this.config.agents ?? {}) as { entries?: object; list?: { id?: string }[] };
    const names = [...Object.keys(entries ?? {}), ...(list ?? []).flatMap((agent) => agent.id ?? [])];
    return names.length > 0 ? names : ["main"];
  }

  hasAgent(agentId: string): boolean {
    return this.agents().includes(agentId);
  }

  workspace(agentId: string): string {
    return this.api.runtime.agent.resolveAgentWorkspaceDir(this.config, agentId);
  }

  /** Whether OpenClaw's setting `memory.search.enabled` allows this agent to use a memory. */
  isEnabled(agentId: string): boolean {
    type Switch = { memory?: { search?: { enabled?: boolean } } };
    const entries = (this.config.agents as { entries?: Record<string, Switch> } | undefined)?.entries;
    const own = entries?.[agentId]?.memory?.search?.enabled;
    return own ?? (this.config as Switch).memory?.search?.enabled ?? true;
  }

  watch(health: Health | undefined): void {
    this.health = health;
    this.report(this.problem);
  }

  private report(problem: string | undefined): void {
    if (problem) this.health?.reportFailure(new Error(problem));
    else this.health?.clearFailure();
  }

  close(): void {
    for (const client of this.clients.values()) client.close();
    this.clients.clear();
  }
}

/** Return the agent of a session key such as `agent:main:main`. */
export function agentOf(sessionKey: string | undefined, agentId?: string): string {
  return agentId ?? /^agent:([^:]+):/.exec(sessionKey ?? "")?.[1] ?? "main";
}

export function isFolder(folder: string): boolean {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isProgram(program: string): boolean {
  const folders = program.includes(path.sep) ? [""] : (process.env.PATH ?? "").split(path.delimiter);
  return folders.some((folder) => {
    try {
      accessSync(path.join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
