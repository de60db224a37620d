/** The memory of each agent: one process or gateway agent per OpenClaw agent, with the same name and workspace. */
import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";
import { GatewayClient, ProcessClient, Unavailable } from "./client.js";
export class Memories {
    api;
    settings;
    clients = new Map();
    health;
    constructor(api, settings) {
        this.api = api;
        this.settings = settings;
    }
    /** Why no memory can work with these settings, found without starting anything. */
    get problem() {
        if (this.settings.problem)
            return `Memory is unavailable: ${this.settings.problem}`;
        const [program = ""] = this.settings.command;
        if (this.settings.url || isProgram(program))
            return undefined;
        return (`Memory is unavailable: the command ${program} was not found. ` +
            "Install it with `pip install memoriter` and run `memoriter install openclaw` again.");
    }
    get config() {
        return this.api.runtime.config?.current?.() ?? this.api.config;
    }
    /** Call an operation for an agent. Throws `Unavailable` or `Refused`, both with one sentence. */
    async call(agentId, operation, args, options = {}) {
        return await this.client(agentId).call(operation, args, { timeoutMs: this.settings.timeoutMs, ...options });
    }
    client(agentId) {
        if (this.settings.problem)
            throw new Unavailable(`Memory is unavailable: ${this.settings.problem}`);
        const known = this.clients.get(agentId);
        if (known)
            return known;
        const client = this.create(agentId);
        this.clients.set(agentId, client);
        return client;
    }
    create(agentId) {
        const { url, token, home, command } = this.settings;
        const onChange = (problem) => this.report(problem);
        if (!this.hasAgent(agentId))
            throw new Unavailable(`Memory is unavailable: OpenClaw has no agent ${agentId}.`);
        if (url && token)
            return new GatewayClient(url, token, agentId, onChange);
        const workspace = this.workspace(agentId);
        if (!isFolder(workspace)) {
            throw new Unavailable(`Memory is unavailable: the workspace ${workspace} of the agent ${agentId} does not exist.`);
        }
        const options = [...(home ? ["--home", home] : []), "--agent", agentId, "--workspace", workspace];
        return new ProcessClient([...command, ...options, "serve", "--stdio"], this.api.logger, onChange);
    }
    /** Names of the agents in OpenClaw's settings. */
    agents() {
        const { entries, list } = (this.config.agents ?? {});
        const names = [...Object.keys(entries ?? {}), ...(list ?? []).flatMap((agent) => agent.id ?? [])];
        return names.length > 0 ? names : ["main"];
    }
    hasAgent(agentId) {
        return this.agents().includes(agentId);
    }
    workspace(agentId) {
        return this.api.runtime.agent.resolveAgentWorkspaceDir(this.config, agentId);
    }
    /** Whether OpenClaw's setting `memory.search.enabled` allows this agent to use a memory. */
    isEnabled(agentId) {
        const entries = this.config.agents?.entries;
        const own = entries?.[agentId]?.memory?.search?.enabled;
        return own ?? this.config.memory?.search?.enabled ?? true;
    }
    watch(health) {
        this.health = health;
        this.report(this.problem);
    }
    report(problem) {
        if (problem)
            this.health?.reportFailure(new Error(problem));
        else
            this.health?.clearFailure();
    }
    close() {
        for (const client of this.clients.values())
            client.close();
        this.clients.clear();
    }
}
/** Return the agent of a session key such as `agent:main:main`. */
export function agentOf(sessionKey, agentId) {
    return agentId ?? /^agent:([^:]+):/.exec(sessionKey ?? "")?.[1] ?? "main";
}
export function isFolder(folder) {
    return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
function isProgram(program) {
    const folders = program.includes(path.sep) ? [""] : (process.env.PATH ?? "").split(path.delimiter);
    return folders.some((folder) => {
        try {
            accessSync(path.join(folder, program), constants.X_OK);
            return true;
        }
        catch {
            return false;
        }
    });
}
