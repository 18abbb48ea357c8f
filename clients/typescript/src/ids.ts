const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/**
 * Returns a new lease ID: a ULID of 48 bits of Unix milliseconds and 80 other bits.
 *
 * @param unixMs the time in it; by default now
 * @param bits ten bytes that differ for every reservation; by default random ones
 */
export function leaseId(unixMs = Date.now(), bits = crypto.getRandomValues(new Uint8Array(10))): string {
  let number = BigInt(Math.floor(unixMs));
  for (const byte of bits.subarray(0, 10)) number = (number << 8n) | BigInt(byte);
  let id = "";
  for (let shift = 125n; shift >= 0n; shift -= 5n) id += ALPHABET[Number((number >> shift) & 31n)];
  return id;
}

/**
 * Returns the same lease ID for the same attempt of a job, in every process.
 *
 * Store the start and the number of the attempt with the job before you reserve.
 */
export async function jobLeaseId(job: string, attempt: number, startedUnixMs: number): Promise<string> {
  const text = new TextEncoder().encode(`${job}/${attempt}`);
  return leaseId(startedUnixMs, new Uint8Array(await crypto.subtle.digest("SHA-256", text)));
}

// What is added to the date of the answer that refused an ID, in milliseconds. A date is cut to the second, and a
// server that was started in it refuses earlier IDs. The second correction is as far ahead as a server allows.
const CORRECTIONS = [1_000, 60_000];

/** Makes lease IDs by the server's clock, which judges the time in them. */
export class ServerClock {
  #aheadMs = 0;

  leaseId(): string {
    return leaseId(Date.now() + this.#aheadMs);
  }

  /**
   * Returns the next ID after the server refused the time in one, or undefined if there is none. The date is that of
   * the refusal; n counts refusals from 0.
   */
  correct(n: number, date: string): string | undefined {
    const correction = CORRECTIONS[n];
    const at = Date.parse(date) + (correction ?? NaN);
    if (Number.isNaN(at)) return undefined;
    if (n === 0) this.#aheadMs = at - Date.now();
    return leaseId(at);
  }
}
