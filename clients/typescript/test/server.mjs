// What tests need of the servers, which clients/typescript_test.go starts.
import assert from "node:assert/strict";
import { Client } from "@weir-limiter/client";

const { WEIR_SERVER, WEIR_LOSING_SERVER, WEIR_STORE } = process.env;
assert.ok(WEIR_SERVER, "WEIR_SERVER names no server: run `go test ./clients -run TestTypeScript`");

export const url = WEIR_SERVER;
export const losingUrl = WEIR_LOSING_SERVER;
/** The number of slots of an entity. DynamoDB has none. */
export const slots = WEIR_STORE === "dynamodb" ? 0 : 5;
export const client = new Client({ url });

/** Milliseconds for which a test waits for what must happen, on a busy machine. */
export const PATIENCE_MS = 120_000;

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns the name of an entity that no other test uses. */
export const newEntity = () => `typescript-${crypto.randomUUID()}`;

/** Returns what an entity uses of each limit: slots are named "parallel". */
export async function used(entity, resource = "counted") {
  const limits = await client.status(entity, resource);
  return Object.fromEntries(limits.map((s) => [s.limit, s.capacity - s.available]));
}

/** Checks what is used when every lease is settled: no slot, and these units. */
export async function expectUsed(entity, calls, tokens) {
  assert.deepEqual(await used(entity), { calls, tokens, ...(slots > 0 ? { parallel: 0 } : {}) });
}

/** Waits until something holds. */
export async function until(holds) {
  const end = Date.now() + PATIENCE_MS;
  for (let ms = 10; !(await holds()); ms = Math.min(ms * 1.2, 500)) {
    assert.ok(Date.now() < end, "it did not happen");
    await pause(ms);
  }
}
