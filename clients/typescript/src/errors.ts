import type { Code, Denial, LimitStatus, Problem } from "./types.js";

/**
 * A limit has no room. Nothing was charged. It is not a {@link WeirError}.
 *
 * To try again, wait for `retryAfterMs` and reserve with a new lease ID.
 */
export class Denied extends Error {
  override readonly name = "Denied";
  /** Milliseconds until the same request fits, if no other call comes in between. */
  readonly retryAfterMs: number;
  /** The limits that judged the request. */
  readonly limits: LimitStatus[];

  constructor(
    /** The whole answer. */
    readonly denial: Denial,
  ) {
    super(denial.detail);
    this.retryAfterMs = denial.retry_after_ms;
    this.limits = denial.limits ?? [];
  }

  /** The limits that denied. Their entity may be a parent of the caller's. */
  get exceeded(): LimitStatus[] {
    return this.limits.filter((s) => s.exceeded && !s.shadow);
  }
}

/** A call failed; `code` says how. With `unavailable` the outcome is unknown. */
export class WeirError extends Error {
  override readonly name = "WeirError";

  constructor(
    /** The server's code; `"unavailable"` also if there was no answer, and `""` for an error without a code. */
    readonly code: Code | "",
    message: string,
    /** The whole answer, if there was one. */
    readonly problem?: Problem,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** The part of the request that has a mistake, such as `costs.tpm`. */
  get field(): string {
    return this.problem?.field ?? "";
  }

  /** Why it is a mistake. */
  get reason(): string {
    return this.problem?.reason ?? "";
  }
}

/** Reports whether an error is a failure with one of the codes. */
export function hasCode(error: unknown, ...codes: Code[]): error is WeirError {
  return error instanceof WeirError && error.code !== "" && codes.includes(error.code);
}
