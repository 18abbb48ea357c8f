import { Denied, WeirError } from "./errors.js";
import type { Denial, Problem } from "./types.js";

/** How often, and for how long, calls are tried. Times are in milliseconds. */
export interface Patience {
  attempts: number;
  backoffMs: number;
  timeoutMs: number;
}

/** A request of the API. */
export interface Call<T> {
  path: string;
  /** Sent as JSON by POST. Without it the request is a GET. */
  body?: object;
  /** Returns the body of a 200, or throws if weir did not write it. */
  accept: (body: any) => T;
  /** Whether 429 means a denial. */
  denies?: boolean;
  attempts?: number;
  /** The time of {@link Date.now} at which to give up. */
  until?: number;
  signal?: AbortSignal | undefined;
}

/** The result of a call: a value, or an error. */
export interface Outcome<T> {
  value?: T;
  error?: WeirError | Denied;
  attempts: number;
  /** An attempt without an answer may have been carried out, or may still arrive. */
  unknown: boolean;
  /** The date of the last answer. */
  date: string;
}

/** Why an attempt has no answer from weir. */
interface NoAnswer {
  why: string;
  cause?: unknown;
  /** The server's own error. */
  fault?: WeirError;
  /** The pause that the server asks for. */
  pauseMs?: number;
  /** The server was too busy: the attempt changed nothing. */
  refused?: boolean;
  /** Nothing was sent. */
  unsent?: boolean;
}

type Verdict<T> = { value: T } | { error: WeirError | Denied } | { none: NoAnswer };

const LONGEST_PAUSE_MS = 2_000;

// The codes of errors before anything was sent, where the platform tells them.
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]);

/** Sends requests to one server. */
export class Sender {
  constructor(
    readonly base: string,
    readonly headers: Record<string, string>,
    readonly patience: Patience,
    readonly fetch: typeof globalThis.fetch,
  ) {}

  /** Repeats a request until it has a definite answer, or the attempts or the time are used up. */
  async call<T>(c: Call<T>): Promise<Outcome<T>> {
    const until = c.until ?? Infinity;
    let unknown = false;
    let reached = false;
    let date = "";
    for (let n = 1; ; n++) {
      const { verdict, at } = await this.#attempt(c, Math.min(this.patience.timeoutMs, Math.max(until - Date.now(), 1)));
      date = at;
      if (!("none" in verdict)) {
        return { ...verdict, attempts: n, unknown: unknown && reached && "error" in verdict, date };
      }
      const none = verdict.none;
      // A refused attempt does not settle the outcome of an earlier one without an answer.
      unknown ||= !none.refused;
      reached ||= !none.unsent && !none.refused;
      const pause = this.#pause(n, none.pauseMs ?? 0);
      if (n >= (c.attempts ?? this.patience.attempts) || Date.now() + pause >= until) {
        const error = !unknown && none.fault !== undefined ? none.fault : unavailable(none);
        return { error, attempts: n, unknown: unknown && reached, date };
      }
      await sleep(pause, c.signal);
    }
  }

  /** Returns the pause between attempts n and n+1, shortened at random by up to a half. */
  #pause(n: number, asked: number): number {
    const { backoffMs, timeoutMs } = this.patience;
    const pause = Math.min(backoffMs * 2 ** Math.min(n - 1, 30), Math.max(LONGEST_PAUSE_MS, backoffMs));
    return Math.max(pause * (0.5 + Math.random() / 2), Math.min(asked, timeoutMs));
  }

  async #attempt<T>(c: Call<T>, timeoutMs: number): Promise<{ verdict: Verdict<T>; at: string }> {
    // A signal made by AbortSignal.any or AbortSignal.timeout may be collected before it fires.
    const ending = new AbortController();
    const abort = () => ending.abort(c.signal?.reason);
    const timer = setTimeout(() => ending.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    c.signal?.addEventListener("abort", abort, { once: true });
    const init: RequestInit = {
      method: c.body === undefined ? "GET" : "POST",
      headers: this.headers,
      redirect: "manual",
      signal: ending.signal,
    };
    if (c.body !== undefined) {
      init.body = JSON.stringify(c.body);
      init.headers = { ...this.headers, "Content-Type": "application/json" };
    }
    try {
      c.signal?.throwIfAborted();
      const answer = await this.fetch(this.base + c.path, init);
      const text = await answer.text();
      return { verdict: judge(answer, text, c), at: answer.headers.get("date") ?? "" };
    } catch (error) {
      c.signal?.throwIfAborted();
      const code = (error as { cause?: { code?: string } }).cause?.code ?? "";
      return { verdict: { none: { why: String(error), cause: error, unsent: UNSENT.has(code) } }, at: "" };
    } finally {
      clearTimeout(timer);
      c.signal?.removeEventListener("abort", abort);
    }
  }
}

function unavailable(last: NoAnswer): WeirError {
  if (last.fault !== undefined && !last.refused) return last.fault;
  return new WeirError("unavailable", `the server did not answer: ${last.why}`, undefined, { cause: last.cause });
}

/** Returns what an answer means. One that weir did not write is never taken for a denial. */
function judge<T>(answer: Response, text: string, c: Call<T>): Verdict<T> {
  const media = (answer.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
  try {
    if (answer.status === 200 && media === "application/json") return { value: c.accept(JSON.parse(text)) };
    if (answer.status !== 200 && media === "application/problem+json") {
      const problem = JSON.parse(text);
      if (problem.status !== answer.status) {
        return { none: { why: `the answer ${answer.status} has another status in its body` } };
      }
      return judgeProblem(answer, problem, c.denies ?? false);
    }
  } catch (error) {
    return { none: { why: `the answer ${answer.status} is incomplete: ${error}`, cause: error } };
  }
  if ([401, 403, 407].includes(answer.status)) { // by a proxy
    return { error: new WeirError("permission denied", `the answer was ${answer.status}`) };
  }
  return { none: { why: `the answer ${answer.status} is not from a weir server`, pauseMs: retryAfterMs(answer) } };
}

function judgeProblem(answer: Response, problem: Problem | Denial, denies: boolean): Verdict<never> {
  const pauseMs = retryAfterMs(answer);
  if (answer.status === 429 || "allowed" in problem) {
    if (!denies || answer.status !== 429 || !("allowed" in problem) || problem.allowed !== false) {
      return { none: { why: `the answer ${answer.status} is not a denial`, pauseMs } };
    }
    return { error: new Denied(problem) };
  }
  const fault = new WeirError(problem.code ?? "", problem.detail, problem);
  if (answer.status === 408) return { none: { why: "the request did not arrive in time", fault, refused: true } };
  if (fault.code === "overloaded") {
    return { none: { why: "the server is too busy", fault, pauseMs, refused: true } };
  }
  if (problem.code === undefined) {
    return { none: { why: `the answer ${answer.status} is not from a weir server`, pauseMs } };
  }
  if (fault.code === "unavailable") return { none: { why: fault.message, fault, pauseMs } };
  if (answer.status === 400 && fault.field === "body") { // the client sent a valid one
    return { none: { why: `the server got another body: ${fault.message}` } };
  }
  return { error: fault };
}

function retryAfterMs(answer: Response): number {
  const text = answer.headers.get("retry-after") ?? "";
  return /^\d+$/.test(text) && [429, 503].includes(answer.status) ? Number(text) * 1000 : 0;
}

/** Returns the value of an outcome, or throws its error. */
export function valueOf<T>(outcome: Outcome<T>): T {
  if (outcome.error !== undefined) throw outcome.error;
  return outcome.value as T;
}

/** Waits, or throws the reason of the signal. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

