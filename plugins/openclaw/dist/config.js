/** The settings of the plugin, checked once. A wrong setting becomes one sentence instead of a crash. */
import { homedir } from "node:os";
import path from "node:path";
export const EXTRA_TOOLS = ["memory_recall", "memory_store", "memory_forget", "memory_save"];
const DEFAULTS = {
    command: ["memoriter"],
    tools: [],
    autoRecall: true,
    autoCapture: true,
    recordSessions: true,
    summaries: true,
    timeoutMs: 8_000,
};
const isText = (value) => typeof value === "string" && value.length > 0;
const isFlag = (value) => typeof value === "boolean";
const CHECKS = {
    command: [(value) => Array.isArray(value) && value.length > 0 && value.every(isText), "a list of strings"],
    home: [isText, "a path"],
    url: [(value) => isText(value) && /^https?:\/\//.test(value) && URL.canParse(value), "an address that starts with http:// or https://"],
    token: [isText, "a string"],
    tools: [
        (value) => Array.isArray(value) && value.every((name) => EXTRA_TOOLS.includes(name)),
        `a list of: ${EXTRA_TOOLS.join(", ")}`,
    ],
    autoRecall: [isFlag, "true or false"],
    autoCapture: [isFlag, "true or false"],
    recordSessions: [isFlag, "true or false"],
    summaries: [isFlag, "true or false"],
    timeoutMs: [
        (value) => Number.isInteger(value) && Number(value) >= 100 && Number(value) <= 60_000,
        "a whole number between 100 and 60000",
    ],
    dreaming: [(value) => typeof value === "object" && value !== null && !Array.isArray(value), "an object"],
};
/** Read the settings from `plugins.entries.memoriter.config`. */
export function readSettings(config) {
    if (config === undefined || config === null)
        return { ...DEFAULTS };
    if (typeof config !== "object" || Array.isArray(config)) {
        return { ...DEFAULTS, problem: "`plugins.entries.memoriter.config` must be an object." };
    }
    const settings = { ...DEFAULTS };
    for (const [name, value] of Object.entries(config)) {
        const check = CHECKS[name];
        if (!check)
            return { ...DEFAULTS, problem: `\`${name}\` is not a setting of memoriter.` };
        if (!check[0](value))
            return { ...DEFAULTS, problem: `The setting \`${name}\` of memoriter must be ${check[1]}.` };
        settings[name] = value;
    }
    const read = settings;
    if (read.url && !read.token)
        return { ...read, problem: "The setting `url` of memoriter also needs `token`." };
    return { ...read, ...(read.home ? { home: expandHome(read.home) } : {}) };
}
function expandHome(folder) {
    return folder === "~" || folder.startsWith("~/") ? path.join(homedir(), folder.slice(1)) : folder;
}
