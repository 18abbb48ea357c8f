// Callers that stop or are aborted: the settlement still reaches the server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, Denied } from "@weir-limiter/client";
import { client, expectUsed, losingUrl, newEntity, PATIENCE_MS, pause, slots, until, url, used } from "./server.mjs";

const costs = { calls: 1, tokens: 500 };

/** Waits like a call of a model that watches a signal. */
const model = (ms, signal) => new Promise((resolve, reject) => {
  signal.throwIfAborted();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
});

test("a stream whose consumer stops is charged what came", async () => {
  const entity = newEntity();
  async function* pieces(lease) {
    lease.sent();
    for (let n = 1; n < 100; n++) {
      lease.report({ tokens: 100 + n });
      yield n;
    }
  }
  for await (const n of client.stream({ entity, resource: "counted", costs }, pieces)) {
    assert.equal((await used(entity)).tokens, 500);
    if (n === 3) break;
  }
  await expectUsed(entity, 1, 103);
  const all = [];
  for await (const n of client.stream({ entity, resource: "counted", costs }, pieces)) all.push(n);
  assert.equal(all.length, 99);
  await expectUsed(entity, 2, 103 + 199);
});

test("a stream that is left asks refundOn nothing, and a refundOn that fails leaks nothing", async () => {
  const entity = newEntity();
  const told = [];
  const c = new Client({ url, warn: (message) => told.push(message) && assert.fail("and warn fails too") });
  const request = { entity, resource: "counted", costs, refundOn: (error) => error.status === 429 };
  const pieces = async function* (lease) {
    lease.sent();
    yield 1;
    throw undefined;
  };
  for await (const _ of c.stream(request, pieces)) break;
  assert.equal(told.length, 0);
  await expectUsed(entity, 1, 500);
  await assert.rejects(async () => {
    for await (const _ of c.stream(request, pieces));
  }, (error) => error === undefined);
  assert.match(told.join(), /refundOn failed/);
  await expectUsed(entity, 2, 1000);
});

test("a call with a signal has its timeout, also after many calls", async () => {
  const { signal } = new AbortController();
  let silent = false;
  const c = new Client({
    url, timeoutMs: 50, attempts: 1, warn: () => {},
    fetch: (to, init) => silent
      ? new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)))
      : Promise.resolve(Response.json({ limits: [] })),
  });
  for (let n = 0; n < 5_000; n++) await c.status("any", "counted", { signal });
  silent = true;
  const call = c.status("any", "counted", { signal });
  const hangs = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref());
  await assert.rejects(Promise.race([call, hangs]), { code: "unavailable" });
});

test("a repeated reservation that cannot be extended is cancelled", async () => {
  const entity = newEntity();
  const c = new Client({
    url: losingUrl,
    fetch: (to, init) => new URL(to).pathname.endsWith("/extend")
      ? Promise.resolve(new Response("no", { status: 403 })) : fetch(to, init),
  });
  await assert.rejects(c.withLease({ entity, resource: "counted", costs }, () => assert.fail("it ran")),
    { code: "permission denied" });
  await c.close();
  await expectUsed(entity, 0, 0);
});

// keptWithLostExtend reports whether a slot outlasts its timeout although the first extend has no answer.
async function keptWithLostExtend() {
  const entity = newEntity();
  let sent = 0;
  const c = new Client({
    url,
    fetch: (to, init) => new URL(to).pathname.endsWith("/extend") && sent++ === 0
      ? new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)))
      : fetch(to, init),
  });
  return c.withLease({ entity, resource: "llm" }, async (lease) => {
    await pause(lease.answer.holds_until_unix_ms + 500 - Date.now());
    return (await used(entity, "llm")).parallel === 1;
  });
}

test("a slot is kept although an extend has no answer", { skip: slots === 0 && "this store has no slots" }, async () => {
  // On a machine that stops for half a second, the slot can be lost.
  assert.ok((await keptWithLostExtend()) || (await keptWithLostExtend()) || (await keptWithLostExtend()));
});

test("a stream that breaks is charged what came", async () => {
  const entity = newEntity();
  const broken = client.stream({ entity, resource: "counted", costs }, async function* (lease) {
    lease.sent();
    lease.report({ tokens: 60 });
    yield 1;
    throw new Error("cut");
  });
  await assert.rejects(async () => {
    for await (const _ of broken);
  }, /cut/);
  await expectUsed(entity, 1, 60);
});

test("a call that is aborted while it runs is settled", async () => {
  const entity = newEntity();
  for (const [server, n] of [[url, 1], [losingUrl, 2]]) {
    const abort = new AbortController();
    const c = new Client({ url: server });
    const call = c.withLease({ entity, resource: "counted", costs, signal: abort.signal }, async (lease) => {
      lease.report({ tokens: 40 });
      setTimeout(() => abort.abort(), 1);
      await model(3_600_000, abort.signal);
    });
    await assert.rejects(call, { name: "AbortError" });
    await expectUsed(entity, n, 40 * n);
  }
});

// aborting returns a client that aborts when it first gets the answer about a verb.
function aborting(verb, server) {
  const abort = new AbortController();
  const c = new Client({
    url: server,
    fetch: async (to, init) => {
      const answer = await fetch(to, init);
      if (!to.endsWith(`/v1/${verb}`)) return answer;
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, text: async () => (abort.abort(), text) };
    },
  });
  return { c, signal: abort.signal };
}

test("a function does not run if the call is aborted while its lease is granted", async () => {
  // Through the losing server the reservation is repeated, and so extended first.
  for (const [verb, server] of [["reserve", url], ["extend", losingUrl]]) {
    const entity = newEntity();
    const { c, signal } = aborting(verb, server);
    const request = { entity, resource: "counted", costs, signal };
    await assert.rejects(c.withLease(request, () => assert.fail("it ran")), { name: "AbortError" });
    await expectUsed(entity, 0, 0);
  }
});

test("a function that ends well after an abort is charged what it has sent", async () => {
  for (const [sent, calls, tokens] of [[false, 0, 0], [true, 1, 500]]) {
    const entity = newEntity();
    for (const streamed of [false, true]) {
      const abort = new AbortController();
      const request = { entity, resource: "counted", costs, signal: abort.signal };
      const run = (lease) => {
        if (sent) lease.sent();
        abort.abort();
        return "answer";
      };
      if (streamed) {
        for await (const _ of client.stream(request, async function* (lease) { yield run(lease); }));
      } else assert.equal(await client.withLease(request, run), "answer");
      const times = streamed ? 2 : 1;
      await expectUsed(entity, calls * times, tokens * times);
    }
  }
});

test("a reservation that is aborted after its answer was lost is cancelled", async () => {
  const entity = newEntity();
  const c = new Client({ url: losingUrl, backoffMs: 3_600_000 });
  const abort = new AbortController();
  const call = c.reserve({ entity, resource: "counted", costs, signal: abort.signal });
  await until(async () => (await used(entity)).tokens === 500);
  abort.abort();
  await assert.rejects(call, { name: "AbortError" });
  // The first answer to the cancel is lost too, after the server has made it.
  await until(async () => (await used(entity)).tokens === 0);
  await expectUsed(entity, 0, 0);
});

test("of 200 calls that are aborted at random moments nothing leaks", async (t) => {
  const entity = newEntity();
  const c = new Client({ url });
  const tally = { entered: 0, aborted: 0, denied: 0, calls: 0, tokens: 0 };
  async function caller() {
    const abort = new AbortController();
    if (Math.random() < 0.75) setTimeout(() => abort.abort(), Math.random() * 100);
    const { signal } = abort;
    let charged = { calls: 0, tokens: 0 }; // an error before sent refunds everything
    try {
      await c.withLease({ entity, resource: "counted", costs, signal, waitMs: 2000 }, async (lease) => {
        tally.entered++;
        await model(Math.random() * 20, signal);
        lease.sent();
        charged = costs;
        for (let n = 0; n < Math.random() * 4; n++) {
          await model(Math.random() * 20, signal);
          charged = { calls: 1, tokens: 100 + n };
          lease.report({ tokens: 100 + n });
        }
      });
    } catch (error) {
      if (error instanceof Denied) tally.denied++;
      else if (error.name === "AbortError") tally.aborted++;
      else throw error;
    }
    tally.calls += charged.calls;
    tally.tokens += charged.tokens;
  }
  const calls = [];
  for (let n = 0; n < 200; n++) {
    calls.push(caller());
    await pause(Math.random() * 8);
  }
  await Promise.all(calls);
  await c.close();
  t.diagnostic(JSON.stringify(tally));
  assert.ok(Math.min(tally.entered, tally.aborted) >= 10, JSON.stringify(tally));
  await expectUsed(entity, tally.calls, tally.tokens);
});
