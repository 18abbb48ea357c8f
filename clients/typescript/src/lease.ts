import { sleep } from "./call.js";
import { hasCode } from "./errors.js";
import type { LeaseAnswer, LimitStatus, Receipt, Units } from "./types.js";

/** How a lease ends: a verb, and the actual use if it is known. */
export type Settlement = { verb: "complete"; actuals?: Units } | { verb: "cancel" };

/** What a lease asks of its client. */
export interface LeaseClient {
  adjust(leaseId: string, seq: number, totals: Units): Promise<Receipt>;
  /** Extends a lease, with attempts until a time of Date.now. */
  extendUntil(leaseId: string, until: number, signal: AbortSignal): Promise<Receipt>;
  /** Ends a lease. It does not throw. */
  settle(leaseId: string, how: Settlement): Promise<void>;
  warn(message: string, error: unknown): void;
}

/** The longest pause of a timer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A lease under which a function of the caller runs; see `Client.withLease`. */
export class Lease {
  readonly #client: LeaseClient;
  readonly #refundOn: (error: unknown) => boolean;
  readonly #ended = new AbortController();
  #sent = false;
  #givenBack = false;
  #report: Units | undefined;
  #seq: number;

  /** @internal */
  constructor(
    client: LeaseClient,
    /** The server's answer. */
    readonly answer: LeaseAnswer,
    refundOn: (error: unknown) => boolean,
  ) {
    this.#client = client;
    this.#refundOn = refundOn;
    this.#seq = answer.seq ?? 0;
    if (!this.degraded && answer.holds_until_unix_ms !== undefined) void this.#extend();
  }

  /** The lease ID. */
  get id(): string {
    return this.answer.lease_id;
  }

  /** Whether the store or the server did not answer and the policy is to allow calls: nothing is charged. */
  get degraded(): boolean {
    return this.answer.degraded ?? false;
  }

  /** The limits that judged the request, with what was left after it. */
  get limits(): LimitStatus[] {
    return this.answer.limits;
  }

  /** Says that the call of the model begins: from now on an error does not refund it. */
  sent(): void {
    this.#sent = true;
  }

  /**
   * Says what was used so far, by the name of the limit. The last report is charged, even if the function fails. A
   * limit that it does not name keeps what was reserved.
   */
  report(actuals: Units): void {
    this.#report = { ...actuals };
    this.#givenBack = false;
  }

  /** Says that nothing was used: everything is refunded, even if the function succeeds. */
  giveBack(): void {
    this.#givenBack = true;
  }

  /** Changes what the lease stands for to new totals, for an answer that outgrows it. */
  async adjust(totals: Units): Promise<void> {
    if (!this.degraded) await this.#client.adjust(this.id, ++this.#seq, totals);
  }

  /**
   * @internal Ends the lease after the function, which has succeeded, was stopped, or failed with an error. The error
   * is in an array, because a function may throw undefined.
   */
  async end(how: "succeeded" | "stopped" | [error: unknown]): Promise<void> {
    this.#ended.abort();
    if (!this.degraded) await this.#client.settle(this.id, this.#settlement(how));
  }

  #settlement(how: "succeeded" | "stopped" | [error: unknown]): Settlement {
    if (this.#givenBack) return { verb: "cancel" };
    if (this.#report !== undefined) return { verb: "complete", actuals: this.#report };
    if (how !== "succeeded" && !this.#sent) return { verb: "cancel" };
    return Array.isArray(how) && this.#refunds(how[0]) ? { verb: "cancel" } : { verb: "complete" };
  }

  #refunds(error: unknown): boolean {
    try {
      return this.#refundOn(error);
    } catch (mistake) {
      this.#client.warn(`lease ${this.id}: refundOn failed, so nothing is refunded`, mistake);
      return false;
    }
  }

  /** Extends the lease until it ends. */
  async #extend(): Promise<void> {
    const { signal } = this.#ended;
    let third = renewalMs(this.answer, this.answer.reserved_at_unix_ms);
    let pause = third;
    for (;;) {
      try {
        await sleep(Math.min(pause, LONGEST_TIMER_MS), signal);
        // Without an answer there is time for two more attempts before the slot is lost.
        pause = third / 4;
        const receipt = await this.#client.extendUntil(this.id, Date.now() + third / 2, signal);
        pause = third = renewalMs(receipt, receipt.at_unix_ms);
      } catch (error) {
        if (signal.aborted) return;
        if (hasCode(error, "ended", "unknown lease")) {
          this.#client.warn(`lease ${this.id} ended before its function`, error);
          return;
        } // after others the next one may succeed
      }
    }
  }
}

/**
 * Returns the milliseconds until a lease is to be extended: a third of what is left, so that two extensions in a row
 * may fail before a slot is lost.
 */
function renewalMs(of: { expires_at_unix_ms?: number; holds_until_unix_ms?: number }, at: number): number {
  const ends = [of.expires_at_unix_ms, of.holds_until_unix_ms].filter((end) => end !== undefined);
  return ends.length === 0 ? 60_000 : Math.max((Math.min(...ends) - at) / 3, 10);
}
