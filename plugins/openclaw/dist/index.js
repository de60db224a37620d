/** memoriter in OpenClaw's memory slot. */
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
import { createCapability } from "./capability.js";
import { registerCommands } from "./cli.js";
import { readSettings } from "./config.js";
import { registerHooks } from "./hooks.js";
import { Memories } from "./memories.js";
import { registerTools } from "./tools.js";
export default definePluginEntry({
    id: "memoriter",
    name: "memoriter",
    description: "Long-term memory: notes, sessions and captured memories.",
    kind: "memory",
    register(api) {
        const memories = new Memories(api, readSettings(api.pluginConfig));
        // Doctor and `plugins inspect` load the plugin and show this line.
        if (memories.problem)
            api.logger.warn(`memoriter: ${memories.problem}`);
        api.registerMemoryCapability(createCapability(memories));
        registerTools(api, memories);
        registerHooks(api, memories);
        registerCommands(api, memories);
        api.registerService({
            id: "memoriter",
            start(ctx) {
                memories.watch(ctx.serviceHealth);
                // Start the process of the first agent now, so that its first turn does not wait.
                const [first = "main"] = memories.agents();
                if (!memories.problem)
                    memories.call(first, "memory.status", {}, { timeoutMs: 60_000 }).catch(() => undefined);
            },
            stop() {
                memories.close();
            },
        });
    },
});
