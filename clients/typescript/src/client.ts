import { Sender, valueOf } from "./call.js";
import { hasCode, WeirError } from "./errors.js";
import { ServerClock } from "./ids.js";
import { Lease, type Settlement } from "./lease.js";
import { cancelAbandoned, receiptOf, Reservation } from "./reserve.js";
import type { Explanation, LeaseAnswer, Limits, LimitStatus, Receipt, Units } from "./types.js";

export interface ClientOptions {
  /** The server. Default: the variable WEIR_SERVER, or `http://127.0.0.1:7117`. */
  url?: string;
  /** The bearer token, for a server with TLS. Default: the variable WEIR_TOKEN, or none. */
  token?: string;
  /** Milliseconds for one attempt. Default: 5,000. */
  timeoutMs?: number;
  /** How often a call without a definite answer is tried. Default: 4. */
  attempts?: number;
  /** Milliseconds before the second attempt; then twice as long each time. Default: 50. */
  backoffMs?: number;
  /**
   * What a reservation becomes if the server does not answer: `"block"` throws, `"allow"` returns a degraded lease,
   * which charges nothing. Default: `"block"`.
   */
  onUnavailable?: "block" | "allow";
  /** Sends the requests. Default: the global fetch. */
  fetch?: typeof globalThis.fetch;
  /** Is told what cannot be thrown, such as a settlement that failed. Default: `console.warn`. */
  warn?: (message: string, error: unknown) => void;
}

export interface CallOptions {
  /** Ends the call; it throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

export interface ReserveRequest extends CallOptions {
  /** Who calls. */
  entity: string;
  /** What is called. */
  resource: string;
  /**
   * The most that the call may use. A limit that is not named is not charged; each concurrency limit takes a slot.
   * Default: nothing.
   */
  costs?: Units;
  /** An ID of your own, such as of `jobLeaseId`. It is not cancelled if the reservation is given up. Default: a new one. */
  leaseId?: string;
  /** Limits of the request, if none are configured. */
  limits?: Limits;
  /** Milliseconds for which a denied reservation is tried again. Default: not at all. */
  waitMs?: number;
}

export interface LeaseRequest extends ReserveRequest {
  /** Reports whether an error means that the model has not billed the call although it was sent. Default: none does. */
  refundOn?: (error: unknown) => boolean;
}

/** Milliseconds for which a lease is settled before that is given up. */
const SETTLE_FOR_MS = 10_000;

/** A client of a weir server. It has no connections of its own: fetch keeps them. */
export class Client {
  readonly #sender: Sender;
  readonly #clock = new ServerClock();
  readonly #onUnavailable: "block" | "allow";
  readonly #background = new Set<Promise<void>>();
  /** @internal */
  readonly warn: (message: string, error: unknown) => void;

  /** Throws a TypeError about a mistake in the options. */
  constructor(options: ClientOptions = {}) {
    const { timeoutMs = 5_000, attempts = 4, backoffMs = 50 } = options;
    const url = options.url ?? variable("WEIR_SERVER") ?? "http://127.0.0.1:7117";
    const token = options.token ?? variable("WEIR_TOKEN");
    const parsed = new URL(url);
    if (!/^https?:$/.test(parsed.protocol) || parsed.username !== "" || parsed.password !== "") {
      throw new TypeError(`url ${url}: must be http:// or https:// and a host, without a password`);
    }
    if (!(attempts >= 1) || !(timeoutMs > 0 && timeoutMs < 2 ** 31) || !(backoffMs >= 0 && backoffMs < 2 ** 31)) {
      throw new TypeError("attempts and timeoutMs must be above zero, and backoffMs not below");
    }
    if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
      throw new TypeError("token: must have printable ASCII characters only, without spaces and line ends");
    }
    const { onUnavailable = "block", warn } = options;
    if (onUnavailable !== "block" && onUnavailable !== "allow") {
      throw new TypeError(`onUnavailable ${String(onUnavailable)}: must be block or allow`);
    }
    const headers: Record<string, string> = { Accept: "application/json, application/problem+json" };
    if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
    const send = options.fetch ?? ((...args: Parameters<typeof fetch>) => globalThis.fetch(...args));
    this.#sender = new Sender(url.replace(/\/+$/, ""), headers, { attempts, backoffMs, timeoutMs }, send);
    this.#onUnavailable = onUnavailable;
    this.warn = (message, error) => {
      try { // a settlement must not fail because nobody can be told
        if (warn !== undefined) warn(message, error);
        else console.warn(`weir: ${message}:`, error);
      } catch {}
    };
  }

  /**
   * Reserves, runs a function, and settles.
   *
   * While the function runs, the lease is extended if it has slots that time out. Then it is settled: with the last
   * `report`, whether the function succeeded or not; otherwise as it was reserved, if the function succeeded or has
   * called `sent`; otherwise, after `giveBack`, and if the signal is aborted before `sent`, everything is refunded. A
   * failure to settle is told to `warn`: what was reserved then stays charged, and the slot returns after its timeout.
   *
   * It throws {@link Denied} or a {@link WeirError} without running the function, and what the function throws. The
   * signal ends the reservation; the function gets no signal, and should watch the same one.
   */
  async withLease<T>(request: LeaseRequest, run: (lease: Lease) => Promise<T> | T): Promise<T> {
    const lease = await this.#enter(request);
    let result: T;
    try {
      result = await run(lease);
    } catch (error) {
      await lease.end([error]);
      throw error;
    }
    await lease.end(request.signal?.aborted ? "stopped" : "succeeded");
    return result;
  }

  /**
   * Like {@link withLease} for a stream: reserves before the first piece, passes the pieces on, and settles after the
   * last one. If the consumer stops before that, or the stream fails, what was reported is charged.
   */
  async *stream<T>(
    request: LeaseRequest, open: (lease: Lease) => AsyncIterable<T> | Promise<AsyncIterable<T>>,
  ): AsyncGenerator<T, void, undefined> {
    const lease = await this.#enter(request);
    let how: "succeeded" | "stopped" | [error: unknown] = "stopped"; // by the consumer, unless it goes on
    try {
      yield* await open(lease);
      if (!request.signal?.aborted) how = "succeeded";
    } catch (error) {
      how = [error];
      throw error;
    } finally {
      await lease.end(how);
    }
  }

  /** Reserves. The caller extends and settles, but not a degraded lease; {@link withLease} does that by itself. */
  reserve(request: ReserveRequest): Promise<LeaseAnswer> {
    return this.#reserve(request, (lease) => Promise.resolve(lease));
  }

  /** Changes what a lease stands for to new totals. seq rises with each adjust. */
  adjust(leaseId: string, seq: number, totals: Units, options?: CallOptions): Promise<Receipt> {
    return this.#update("adjust", leaseId, { seq, totals: checked("totals", totals) }, options);
  }

  /** Renews a lease and its slots. */
  extend(leaseId: string, options?: CallOptions): Promise<Receipt> {
    return this.#update("extend", leaseId, {}, options);
  }

  /** Ends a lease, charged what was used. What actuals does not name stays as reserved. */
  complete(leaseId: string, actuals: Units = {}, options?: CallOptions): Promise<Receipt> {
    return this.#update("complete", leaseId, { actuals: checked("actuals", actuals) }, options);
  }

  /** Ends a lease and refunds everything. */
  cancel(leaseId: string, options?: CallOptions): Promise<Receipt> {
    return this.#update("cancel", leaseId, {}, options);
  }

  /** Returns what is left of each limit of an entity, on one resource or on all. */
  async status(entity: string, resource?: string, options?: CallOptions): Promise<LimitStatus[]> {
    return (await this.#ask<{ limits: LimitStatus[] }>("status", { entity, resource }, options)).limits;
  }

  /** Returns which limits apply to an entity on a resource, and where they come from. */
  explain(entity: string, resource: string, options?: CallOptions): Promise<Explanation> {
    return this.#ask("explain", { entity, resource }, options);
  }

  /** Waits until reservations that were given up are cancelled, which takes ten seconds at most. */
  async close(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background);
  }

  /** @internal Extends a lease, with attempts until a time of Date.now. */
  extendUntil(leaseId: string, until: number, signal: AbortSignal): Promise<Receipt> {
    return this.#update("extend", leaseId, {}, { signal }, until);
  }

  /** @internal Ends a lease. A failure is told and not thrown, so that no model's answer is lost. */
  async settle(leaseId: string, how: Settlement): Promise<void> {
    const until = Date.now() + SETTLE_FOR_MS;
    const members = "actuals" in how ? { actuals: how.actuals } : {};
    try {
      try {
        if ("actuals" in members) checked("actuals", members.actuals);
        await this.#update(how.verb, leaseId, members, undefined, until);
      } catch (error) {
        if (!("actuals" in members) || !hasCode(error, "invalid", "unknown limit")) throw error;
        // The amounts stay as reserved, but the slots return.
        this.warn(`lease ${leaseId}: the report is wrong, so what was reserved stays charged`, error);
        await this.#update(how.verb, leaseId, {}, undefined, until);
      }
    } catch (error) {
      this.warn(`lease ${leaseId} was not settled`, error);
    }
  }

  async #enter(request: LeaseRequest): Promise<Lease> {
    const lease = await this.#reserve(request, async (answer) => {
      // A repeated reservation may be old.
      if (answer.replay) await this.#refresh(answer, request);
      return new Lease(this, answer, request.refundOn ?? (() => false));
    });
    if (request.signal?.aborted) { // while the answer arrived, and nothing has been sent yet
      await lease.end("stopped");
      throw request.signal.reason;
    }
    return lease;
  }

  async #refresh(answer: LeaseAnswer, { signal, leaseId }: LeaseRequest): Promise<void> {
    try {
      const receipt = await this.extend(answer.lease_id, { signal });
      if (answer.holds_until_unix_ms !== undefined && receipt.holds_until_unix_ms === undefined) {
        throw new WeirError("ended", "the slots of the lease have timed out");
      }
      answer.reserved_at_unix_ms = receipt.at_unix_ms;
      if (receipt.expires_at_unix_ms !== undefined) answer.expires_at_unix_ms = receipt.expires_at_unix_ms;
      if (receipt.holds_until_unix_ms !== undefined) answer.holds_until_unix_ms = receipt.holds_until_unix_ms;
    } catch (error) {
      if (hasCode(error, "unavailable", "overloaded")) return; // it is extended again soon
      // A caller that brought its ID repeats or cancels it itself.
      if (leaseId === undefined) this.#run(cancelAbandoned(this.#sender, answer.lease_id, this.warn));
      throw error;
    }
  }

  async #reserve<T>(q: ReserveRequest, use: (answer: LeaseAnswer) => Promise<T>): Promise<T> {
    if (q.leaseId !== undefined && q.waitMs !== undefined) {
      throw new TypeError("waitMs needs a new lease ID for each attempt: do not bring one");
    }
    if (q.waitMs !== undefined && !(q.waitMs >= 0)) throw new TypeError(`waitMs ${q.waitMs}: must not be below zero`);
    const costs = checked("costs", q.costs ?? {});
    const r = new Reservation(this.#sender, this.#clock, {
      entity: q.entity, resource: q.resource, costs, ...(q.limits === undefined ? {} : { limits: q.limits }),
    }, q.leaseId);
    let answer: LeaseAnswer;
    try {
      answer = await r.make(q.waitMs, q.signal);
    } catch (error) {
      if (this.#onUnavailable === "block" || !hasCode(error, "unavailable")) throw error;
      answer = { allowed: true, lease_id: r.id, reserved_at_unix_ms: Date.now(), degraded: true, limits: [] };
    } finally {
      for (const id of r.abandoned()) this.#run(cancelAbandoned(this.#sender, id, this.warn));
    }
    return use(answer);
  }

  #run(work: Promise<void>): void {
    const done = work.catch((error: unknown) => this.warn("a reservation may not have been cancelled", error))
      .finally(() => this.#background.delete(done));
    this.#background.add(done);
  }

  async #update(
    verb: string, leaseId: string, members: object, options?: CallOptions, until?: number,
  ): Promise<Receipt> {
    return valueOf(await this.#sender.call({
      path: `/v1/${verb}`, body: { lease_id: leaseId, ...members }, accept: (body) => receiptOf(body, leaseId),
      signal: options?.signal, ...(until === undefined ? {} : { until }),
    }));
  }

  async #ask<T extends { limits: unknown }>(
    verb: string, query: Record<string, string | undefined>, options?: CallOptions,
  ): Promise<T> {
    const given = Object.entries(query).filter((of): of is [string, string] => of[1] !== undefined);
    const accept = (body: T): T => {
      if (body.limits === undefined) throw new Error("it has no limits");
      return body;
    };
    return valueOf(await this.#sender.call({
      path: `/v1/${verb}?${new URLSearchParams(given)}`, accept, signal: options?.signal,
    }));
  }
}

/** Returns a variable of the environment, where the platform has one. Empty is as good as none. */
function variable(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string> } }).process?.env?.[name] || undefined;
}

/** Returns units, or throws a WeirError about an amount that would change on its way. */
function checked(field: string, units: Units): Units {
  for (const [limit, amount] of Object.entries(units)) {
    if (!Number.isSafeInteger(amount)) {
      const reason = "must be a whole number, at most 9007199254740991 in JavaScript";
      const detail = `${field}.${limit} ${amount}: ${reason}`;
      throw new WeirError("invalid", detail, {
        type: "urn:weir:problem:invalid", title: "invalid", status: 400, detail, code: "invalid",
        field: `${field}.${limit}`, value: String(amount), reason,
      });
    }
  }
  return units;
}
