import { type Outcome, type Sender, sleep, valueOf } from "./call.js";
import { Denied, hasCode, WeirError } from "./errors.js";
import type { ServerClock } from "./ids.js";
import type { LeaseAnswer, Limits, Receipt } from "./types.js";

/** The body of a reserve, without the lease ID. */
export interface ReserveBody {
  entity: string;
  resource: string;
  costs: Record<string, number>;
  limits?: Limits;
}

const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 1_000;
const CANCEL_FOR_MS = 10_000;

// A reserve that was given up may still be on its way when its cancel is answered 404, and may reach another server.
// So the cancel is repeated this often.
const CANCELS_AFTER_404 = 4;

/** A reservation that is being made. It knows which IDs to cancel if it is given up. */
export class Reservation {
  /** Something may be reserved under the ID. */
  #open = false;
  /** Earlier IDs that may hold something. */
  #strays: string[] = [];
  #id: string;
  readonly #own: boolean;

  constructor(
    readonly sender: Sender,
    readonly clock: ServerClock,
    readonly body: ReserveBody,
    id: string | undefined,
  ) {
    this.#own = id === undefined;
    this.#id = id ?? clock.leaseId();
  }

  get id(): string {
    return this.#id;
  }

  /** Returns the IDs to cancel. A caller that brought its ID repeats or cancels it itself. */
  abandoned(): string[] {
    const ids = this.#open ? [...this.#strays, this.#id] : this.#strays;
    return this.#own ? ids : [];
  }

  /** Reserves. After a denial it tries again until waitMs have passed. */
  async make(waitMs: number | undefined, signal: AbortSignal | undefined): Promise<LeaseAnswer> {
    signal?.throwIfAborted();
    const until = Date.now() + (waitMs ?? 0);
    for (let pause = FIRST_WAIT_MS; ; pause = Math.min(2 * pause, LONGEST_WAIT_MS)) {
      try {
        return await this.#once(signal);
      } catch (error) {
        const left = until - Date.now();
        if (waitMs === undefined || left <= 0 || !(error instanceof Denied || hasCode(error, "overloaded"))) throw error;
        // A random part keeps callers that were denied together from coming back together.
        await sleep(Math.min(waitAfterMs(error, pause) * (1 + Math.random() / 8), left), signal);
        this.#renew(this.clock.leaseId());
      }
    }
  }

  async #once(signal: AbortSignal | undefined): Promise<LeaseAnswer> {
    let left = this.sender.patience.attempts;
    for (let corrections = 0; ; ) {
      const id = this.#id;
      this.#open = true;
      const out: Outcome<LeaseAnswer> = await this.sender.call({
        path: "/v1/reserve", body: { lease_id: id, ...this.body }, accept: (body) => leaseOf(body, id),
        denies: true, attempts: left, signal,
      });
      if (out.error === undefined) {
        this.#open = false;
        return valueOf(out);
      }
      this.#open = out.unknown;
      const refused = hasCode(out.error, "invalid") && out.error.field === "lease_id";
      if (this.#own && !out.unknown && refused) { // the time in the ID is wrong, and nothing was charged
        const next = this.clock.correct(corrections++, out.date);
        if (next !== undefined) {
          this.#renew(next);
          continue;
        }
      }
      const ended = hasCode(out.error, "ended");
      if (out.unknown && (ended || refused)) {
        left -= out.attempts;
        if (this.#own && ended && left > 0) { // an earlier attempt was cancelled: nothing is charged for this ID
          this.#open = false;
          this.#renew(this.clock.leaseId());
          continue;
        }
        // An earlier attempt may have used the ID, so the outcome is unknown.
        throw new WeirError("unavailable", "the server did not answer", undefined, { cause: out.error });
      }
      throw out.error;
    }
  }

  #renew(id: string): void {
    if (this.#open) this.#strays.push(this.#id);
    this.#id = id;
    this.#open = false;
  }
}

/** Cancels a reservation that was given up. It may not have arrived yet. */
export async function cancelAbandoned(
  sender: Sender, id: string, warn: (message: string, error: unknown) => void,
): Promise<void> {
  const until = Date.now() + CANCEL_FOR_MS;
  for (let n = 0; n < CANCELS_AFTER_404; n++) {
    const out = await sender.call({
      path: "/v1/cancel", body: { lease_id: id }, accept: (body) => receiptOf(body, id), attempts: Infinity, until,
    });
    if (!hasCode(out.error, "unknown lease")) {
      if (out.error !== undefined && !hasCode(out.error, "ended")) {
        warn(`reservation ${id} was given up, and not cancelled`, out.error);
      }
      return;
    }
    await sleep(100 * 2 ** n);
  }
}

/** Returns how long to wait before the next attempt. */
function waitAfterMs(error: Denied | WeirError, pause: number): number {
  if (!(error instanceof Denied)) return pause;
  // Each caller that is denied a slot is given a time of its own.
  if (error.limits.some((s) => s.retry_likely_ms !== undefined)) return error.retryAfterMs;
  return error.retryAfterMs > 0 ? Math.min(error.retryAfterMs, pause) : pause;
}

/** Returns the body as the answer about a lease, or throws. */
function leaseOf(body: LeaseAnswer, id: string): LeaseAnswer {
  const complete = body.allowed === true && body.lease_id.toUpperCase() === id.toUpperCase() &&
    body.reserved_at_unix_ms > 0 && Array.isArray(body.limits);
  if (!complete) throw new Error("it is not the answer about this lease");
  return body;
}

/** Returns the body as a receipt for a lease, or throws. */
export function receiptOf(body: Receipt, id: string): Receipt {
  if (body.lease_id.toUpperCase() !== id.toUpperCase() || !(body.at_unix_ms > 0)) {
    throw new Error("it is not the answer about this lease");
  }
  return body;
}
