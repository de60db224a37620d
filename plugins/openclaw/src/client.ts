/** Calls of memoriter: to a process over standard I/O, or to a gateway over HTTP. */

import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

export type Access = "read" | "write" | "admin";
export type Result = Record<string, unknown>;
export type CallOptions = {
  /** The session key, which decides whether this session may use the memory. */
  session?: string;
  /** Words of the model have the access `write`. Only the host speaks for the owner. */
  access?: Access;
  timeoutMs: number;
  /** A call that changes nothing is repeated once if the process ends during it. */
  repeatable?: boolean;
};

/** The memory gave no answer. The message says why, in one sentence. */
export class Unavailable extends Error {}

/** The memory answered that it cannot do this. */
export class Refused extends Error {
  constructor(message: string, readonly outcome: string) {
    super(message);
  }
}

export interface Client {
  call(operation: string, args: object, options: CallOptions): Promise<Result>;
  /** Why the last call was not answered; undefined while the memory works. */
  readonly problem: string | undefined;
  close(): void;
}

function answerOf(operation: string, outcome: string, result: Result): Result {
  if (outcome === "ok") return result;
  const message = typeof result.error === "string" ? result.error : `${operation} failed.`;
  if (outcome === "disabled") throw new Unavailable(message);
  throw new Refused(message, outcome);
}

// ---- a process ------------------------------------------------------------------------------------------------------

/** The first attempt after a failure is immediate, the next ones wait longer and longer. */
const BACKOFF_MS = [0, 1_000, 2_000, 5_000, 15_000, 60_000];
/** A process that answers nothing for so many calls is replaced. */
const MAX_MISSED_DEADLINES = 3;
const STDERR_CHARS = 2_000;

type Pending = { resolve: (value: Result) => void; reject: (error: Error) => void; operation: string };
type Log = { warn: (message: string) => void; info: (message: string) => void };

/** One long-lived process, started at the first call and again after it has ended. */
export class ProcessClient implements Client {
  problem: string | undefined;
  private child: ChildProcess | undefined;
  private readonly pending = new Map<number, Pending>();
  private lastId = 0;
  private failures = 0;
  private retryAt = 0;
  private missed = 0;
  private stderr = "";
  private closed = false;

  constructor(
    private readonly command: string[],
    private readonly log: Log,
    private readonly onChange: (problem: string | undefined) => void,
  ) {}

  async call(operation: string, args: object, options: CallOptions): Promise<Result> {
    const deadline = Date.now() + options.timeoutMs;
    try {
      return await this.attempt(operation, args, options, deadline);
    } catch (error) {
      const ended = error instanceof ProcessEnded;
      if (!ended || !options.repeatable || Date.now() >= deadline || Date.now() < this.retryAt) throw error;
      return await this.attempt(operation, args, options, deadline);
    }
  }

  private attempt(operation: string, args: object, options: CallOptions, deadline: number): Promise<Result> {
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
      const settle = <T>(then: (value: T) => void) => (value: T) => {
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
  private start(): ChildProcess | Error {
    if (this.child) return this.child;
    if (this.closed) return new Unavailable("Memory is unavailable: OpenClaw has closed it.");
    const wait = this.retryAt - Date.now();
    if (wait > 0) return new Unavailable(`${this.problem} The next attempt is in ${seconds(wait)}.`);
    const [program = "memoriter", ...rest] = this.command;
    const child = spawn(program, rest, { stdio: ["pipe", "pipe", "pipe"], env: process.env, windowsHide: true });
    this.child = child;
    this.stderr = "";
    this.missed = 0;
    child.on("error", (error: NodeJS.ErrnoException) => this.end(child, startFailure(program, error)));
    child.on("exit", (code, signal) => {
      // The last lines of standard error arrive after the exit.
      setImmediate(() => this.end(child, exitReason(code, signal, this.stderr)));
    });
    child.stdin?.on("error", () => undefined); // the exit reports the reason
    child.stderr?.on("data", (data: Buffer) => {
      this.stderr = (this.stderr + data.toString()).slice(-STDERR_CHARS);
    });
    if (child.stdout) createInterface({ input: child.stdout }).on("line", (line) => this.read(line));
    // The process must not keep a one-shot command of OpenClaw alive. It ends when its standard input closes.
    for (const stream of [child, child.stdin, child.stdout, child.stderr]) {
      (stream as { unref?: () => void } | null)?.unref?.();
    }
    return child;
  }

  private read(line: string): void {
    let message: { id?: unknown; outcome?: unknown; result?: unknown; ready?: unknown };
    try {
      message = JSON.parse(line) as typeof message;
    } catch {
      this.log.warn(`memoriter: unexpected output: ${line.slice(0, 200)}`);
      return;
    }
    this.missed = 0;
    if (message.ready) {
      this.recover();
      return;
    }
    const waiting = this.pending.get(Number(message.id));
    if (!waiting) return;
    try {
      waiting.resolve(answerOf(waiting.operation, String(message.outcome), (message.result ?? {}) as Result));
    } catch (error) {
      waiting.reject(error as Error);
    }
  }

  private recover(): void {
    if (this.problem) this.log.info("memoriter: memory is available again.");
    this.failures = 0;
    this.setProblem(undefined);
  }

  private missDeadline(timeoutMs: number): void {
    this.missed += 1;
    if (this.missed < MAX_MISSED_DEADLINES || !this.child) return;
    const child = this.child;
    this.end(child, `memoriter did not answer ${this.missed} times within ${seconds(timeoutMs)}`);
    child.kill("SIGKILL");
  }

  private end(child: ChildProcess, reason: string): void {
    if (this.child !== child) return;
    this.child = undefined;
    const delay = BACKOFF_MS[Math.min(this.failures, BACKOFF_MS.length - 1)] ?? 60_000;
    this.failures += 1;
    this.retryAt = Date.now() + delay;
    if (!this.closed) {
      this.setProblem(`Memory is unavailable: ${reason}.`);
      this.log.warn(`memoriter: ${this.problem}`);
    }
    const error = new ProcessEnded(`Memory is unavailable: ${reason}.`);
    for (const waiting of [...this.pending.values()]) waiting.reject(error);
  }

  private setProblem(problem: string | undefined): void {
    this.problem = problem;
    this.onChange(problem);
  }

  close(): void {
    this.closed = true;
    this.child?.stdin?.end();
  }
}

class ProcessEnded extends Unavailable {}

function startFailure(program: string, error: NodeJS.ErrnoException): string {
  return error.code === "ENOENT"
    ? `the command ${program} was not found; install it with \`pip install memoriter\` and run \`memoriter install openclaw\` again`
    : `${program} could not be started (${error.code ?? error.message})`;
}

function exitReason(code: number | null, signal: NodeJS.Signals | null, stderr: string): string {
  const last = stderr.trim().split("\n").at(-1)?.replace(/^memoriter: /, "").replace(/\.$/, "") ?? "";
  const how = signal ? `memoriter was stopped by ${signal}` : `memoriter ended with status ${code}`;
  const hint = /No module named /.test(stderr) ? "; install it with `pip install memoriter`" : "";
  return last && !signal ? `${how}: ${last.slice(0, 300)}${hint}` : how;
}

function seconds(milliseconds: number): string {
  return `${Math.max(0.1, milliseconds / 1_000).toFixed(milliseconds < 10_000 ? 1 : 0)} s`;
}

// ---- a gateway ------------------------------------------------------------------------------------------------------

/** A memoriter gateway at an address, which serves an agent of the same name. */
export class GatewayClient implements Client {
  problem: string | undefined;

  constructor(
    private readonly url: string,
    private readonly token: string,
    private readonly agent: string,
    private readonly onChange: (problem: string | undefined) => void,
  ) {}

  async call(operation: string, args: object, options: CallOptions): Promise<Result> {
    const address = `${this.url.replace(/\/$/, "")}/v1/agents/${encodeURIComponent(this.agent)}/${operation}`;
    let response: Response;
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
      return this.answer(operation, response.status, (await response.json()) as Result);
    } catch (error) {
      if (error instanceof Unavailable || error instanceof Refused) throw error;
      const late = (error as Error).name === "TimeoutError";
      const reason = late ? `did not answer within ${seconds(options.timeoutMs)}` : "cannot be reached";
      throw this.fail(`the gateway ${this.url} ${reason}`);
    }
  }

  private answer(operation: string, status: number, body: Result): Result {
    const { code, error } = body;
    if (status === 401) throw this.fail(`the gateway ${this.url} refuses the token`);
    if (code === "unknown_agent") throw this.fail(`the gateway ${this.url} has no agent ${this.agent}`);
    if (status >= 500) throw this.fail(`${error || "the gateway failed"}`.replace(/\.$/, ""));
    this.onChange((this.problem = undefined));
    const failure = code === "session_refused" ? "refused" : status === 404 ? "not_found" : "failed";
    return answerOf(operation, status === 200 ? "ok" : failure, body);
  }

  private fail(reason: string): Unavailable {
    this.onChange((this.problem = `Memory is unavailable: ${reason}.`));
    return new Unavailable(this.problem);
  }

  close(): void {}
}
