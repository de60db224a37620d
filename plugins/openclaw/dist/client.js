/** Calls of memoriter: to a process over standard I/O, or to a gateway over HTTP. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
/** The memory gave no answer. The message says why, in one sentence. */
export class Unavailable extends Error {
}
/** The memory answered that it cannot do this. */
export class Refused extends Error {
    outcome;
    constructor(message, outcome) {
        super(message);
        this.outcome = outcome;
    }
}
function answerOf(operation, outcome, result) {
    if (outcome === "ok")
        return result;
    const message = typeof result.error === "string" ? result.error : `${operation} failed.`;
    if (outcome === "disabled")
        throw new Unavailable(message);
    throw new Refused(message, outcome);
}
// ---- a process ------------------------------------------------------------------------------------------------------
/** The first attempt after a failure is immediate, the next ones wait longer and longer. */
const BACKOFF_MS = [0, 1_000, 2_000, 5_000, 15_000, 60_000];
/** A process that answers nothing for so many calls is replaced. */
const MAX_MISSED_DEADLINES = 3;
const STDERR_CHARS = 2_000;
/** One long-lived process, started at the first call and again after it has ended. */
export class ProcessClient {
    command;
    log;
    onChange;
    problem;
    child;
    pending = new Map();
    lastId = 0;
    failures = 0;
    retryAt = 0;
    missed = 0;
    stderr = "";
    closed = false;
    constructor(command, log, onChange) {
        this.command = command;
        this.log = log;
        this.onChange = onChange;
    }
    async call(operation, args, options) {
        const deadline = Date.now() + options.timeoutMs;
        try {
            return await this.attempt(operation, args, options, deadline);
        }
        catch (error) {
            const ended = error instanceof ProcessEnded;
            if (!ended || !options.repeatable || Date.now() >= deadline || Date.now() < this.retryAt)
                throw error;
            return await this.attempt(operation, args, options, deadline);
        }
    }
    attempt(operation, args, options, deadline) {
        return new Promise((resolve, reject) => {
            const child = this.start();
            if (child instanceof Error) {
                reject(child);
                return;
            }
            const id = ++this.lastId;
            const timer = setTimeout(() => {
                this.pending.delete(id);
                this.missDeadline(options.timeoutMs);
                reject(new Unavailable(`Memory is unavailable: memoriter did not answer within ${seconds(options.timeoutMs)}.`));
            }, Math.max(0, deadline - Date.now()));
            const settle = (then) => (value) => {
                clearTimeout(timer);
                this.pending.delete(id);
                then(value);
            };
            this.pending.set(id, { resolve: settle(resolve), reject: settle(reject), operation });
            const { session, access = "admin" } = options;
            child.stdin?.write(`${JSON.stringify({ id, operation, arguments: args, session, access })}\n`);
        });
    }
    /** Return the running process, or the reason why there is none. */
    start() {
        if (this.child)
            return this.child;
        if (this.closed)
            return new Unavailable("Memory is unavailable: OpenClaw has closed it.");
        const wait = this.retryAt - Date.now();
        if (wait > 0)
            return new Unavailable(`${this.problem} The next attempt is in ${seconds(wait)}.`);
        const [program = "memoriter", ...rest] = this.command;
        const child = spawn(program, rest, { stdio: ["pipe", "pipe", "pipe"], env: process.env, windowsHide: true });
        this.child = child;
        this.stderr = "";
        this.missed = 0;
        child.on("error", (error) => this.end(child, startFailure(program, error)));
        child.on("exit", (code, signal) => {
            // The last lines of standard error arrive after the exit.
            setImmediate(() => this.end(child, exitReason(code, signal, this.stderr)));
        });
        child.stdin?.on("error", () => undefined); // the exit reports the reason
        child.stderr?.on("data", (data) => {
            this.stderr = (this.stderr + data.toString()).slice(-STDERR_CHARS);
        });
        if (child.stdout)
            createInterface({ input: child.stdout }).on("line", (line) => this.read(line));
        // The process must not keep a one-shot command of OpenClaw alive. It ends when its standard input closes.
        for (const stream of [child, child.stdin, child.stdout, child.stderr]) {
            stream?.unref?.();
        }
        return child;
    }
    read(line) {
        let message;
        try {
            message = JSON.parse(line);
        }
        catch {
            this.log.warn(`memoriter: unexpected output: ${line.slice(0, 200)}`);
            return;
        }
        this.missed = 0;
        if (message.ready) {
            this.recover();
            return;
        }
        const waiting = this.pending.get(Number(message.id));
        if (!waiting)
            return;
        try {
            waiting.resolve(answerOf(waiting.operation, String(message.outcome), (message.result ?? {})));
        }
        catch (error) {
            waiting.reject(error);
        }
    }
    recover() {
        if (this.problem)
            this.log.info("memoriter: memory is available again.");
        this.failures = 0;
        this.setProblem(undefined);
    }
    missDeadline(timeoutMs) {
        this.missed += 1;
        if (this.missed < MAX_MISSED_DEADLINES || !this.child)
            return;
        const child = this.child;
        this.end(child, `memoriter did not answer ${this.missed} times within ${seconds(timeoutMs)}`);
        child.kill("SIGKILL");
    }
    end(child, reason) {
        if (this.child !== child)
            return;
        this.child = undefined;
        const delay = BACKOFF_MS[Math.min(this.failures, BACKOFF_MS.length - 1)] ?? 60_000;
        this.failures += 1;
        this.retryAt = Date.now() + delay;
        if (!this.closed) {
            this.setProblem(`Memory is unavailable: ${reason}.`);
            this.log.warn(`memoriter: ${this.problem}`);
        }
        const error = new ProcessEnded(`Memory is unavailable: ${reason}.`);
        for (const waiting of [...this.pending.values()])
            waiting.reject(error);
    }
    setProblem(problem) {
        this.problem = problem;
        this.onChange(problem);
    }
    close() {
        this.closed = true;
        this.child?.stdin?.end();
    }
}
class ProcessEnded extends Unavailable {
}
function startFailure(program, error) {
    return error.code === "ENOENT"
        ? `the command ${program} was not found; install it with \`pip install memoriter\` and run \`memoriter install openclaw\` again`
        : `${program} could not be started (${error.code ?? error.message})`;
}
function exitReason(code, signal, stderr) {
    const last = stderr.trim().split("\n").at(-1)?.replace(/^memoriter: /, "").replace(/\.$/, "") ?? "";
    const how = signal ? `memoriter was stopped by ${signal}` : `memoriter ended with status ${code}`;
    const hint = /No module named /.test(stderr) ? "; install it with `pip install memoriter`" : "";
    return last && !signal ? `${how}: ${last.slice(0, 300)}${hint}` : how;
}
function seconds(milliseconds) {
    return `${Math.max(0.1, milliseconds / 1_000).toFixed(milliseconds < 10_000 ? 1 : 0)} s`;
}
// ---- a gateway ------------------------------------------------------------------------------------------------------
/** A memoriter gateway at an address, which serves an agent of the same name. */
export class GatewayClient {
    url;
    token;
    agent;
    onChange;
    problem;
    constructor(url, token, agent, onChange) {
        this.url = url;
        this.token = token;
        this.agent = agent;
        this.onChange = onChange;
    }
    async call(operation, args, options) {
        const address = `${this.url.replace(/\/$/, "")}/v1/agents/${encodeURIComponent(this.agent)}/${operation}`;
        let response;
        try {
            response = await fetch(address, {
                method: "POST",
                headers: {
                    authorization: `Bearer ${this.token}`,
                    "content-type": "application/json",
                    ...(options.session ? { "x-memoriter-session": options.session } : {}),
                    ...(options.access ? { "x-memoriter-access": options.access } : {}),
                },
                body: JSON.stringify(args),
                signal: AbortSignal.timeout(options.timeoutMs),
            });
            return this.answer(operation, response.status, (await response.json()));
        }
        catch (error) {
            if (error instanceof Unavailable || error instanceof Refused)
                throw error;
            const late = error.name === "TimeoutError";
            const reason = late ? `did not answer within ${seconds(options.timeoutMs)}` : "cannot be reached";
            throw this.fail(`the gateway ${this.url} ${reason}`);
        }
    }
    answer(operation, status, body) {
        const { code, error } = body;
        if (status === 401)
            throw this.fail(`the gateway ${this.url} refuses the token`);
        if (code === "unknown_agent")
            throw this.fail(`the gateway ${this.url} has no agent ${this.agent}`);
        if (status >= 500)
            throw this.fail(`${error || "the gateway failed"}`.replace(/\.$/, ""));
        this.onChange((this.problem = undefined));
        const failure = code === "session_refused" ? "refused" : status === 404 ? "not_found" : "failed";
        return answerOf(operation, status === 200 ? "ok" : failure, body);
    }
    fail(reason) {
        this.onChange((this.problem = `Memory is unavailable: ${reason}.`));
        return new Unavailable(this.problem);
    }
    close() { }
}
