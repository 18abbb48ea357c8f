// Leases against a server: what is charged, and that nothing leaks.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { Client, Denied, hasCode, jobLeaseId, leaseId } from "@weir-limiter/client";
import { client, expectUsed, losingUrl, newEntity, pause, PATIENCE_MS, slots, until, url, used } from "./server.mjs";

const costs = { calls: 1, tokens: 500 };
const noSlots = slots === 0 ? "this store has no slots" : false;

class Refused extends Error {}

const report = (lease) => {
  lease.sent();
  lease.report({ tokens: 7 });
  lease.report({ tokens: 40 });
};
const fail = () => {
  throw new Refused();
};

test("a lease is settled once, by what its function says", async (t) => {
  const cases = [
    ["succeeds", () => {}, {}, [1, 500]],
    ["is sent", (l) => l.sent(), {}, [1, 500]],
    ["fails before it is sent", fail, {}, [0, 0]],
    ["fails after it is sent", (l) => (l.sent(), fail()), {}, [1, 500]],
    ["fails with an error that refunds", (l) => (l.sent(), fail()), { refundOn: (e) => e instanceof Refused }, [0, 0]],
    ["fails with another error", (l) => (l.sent(), fail()), { refundOn: (e) => e instanceof RangeError }, [1, 500]],
    ["reports", report, {}, [1, 40]],
    ["reports and fails", (l) => (report(l), fail()), {}, [1, 40]],
    ["reports and fails with an error that refunds", (l) => (report(l), fail()), { refundOn: () => true }, [1, 40]],
    ["gives back", (l) => (report(l), l.giveBack()), {}, [0, 0]],
  ];
  for (const server of [url, losingUrl]) {
    for (const [name, run, more, [calls, tokens]] of cases) {
      await t.test(name + (server === losingUrl ? ", and answers are lost" : ""), async () => {
        const entity = newEntity();
        const c = new Client({ url: server });
        const lease = c.withLease({ entity, resource: "counted", costs, ...more }, (l) => run(l) ?? "answer");
        if (name.includes("fails")) await assert.rejects(lease, Refused);
        else assert.equal(await lease, "answer");
        await expectUsed(entity, calls, tokens);
      });
    }
  }
});

test("lost answers are repeated with the same ID", async () => {
  const entity = newEntity();
  const sent = [];
  const c = new Client({
    url: losingUrl,
    fetch: (to, init) => {
      sent.push([new URL(to).pathname, init.body]);
      return fetch(to, init);
    },
  });
  await c.withLease({ entity, resource: "counted", costs }, async (lease) => {
    assert.equal(lease.answer.replay, true);
    assert.equal((await used(entity)).calls, 1);
    lease.report({ tokens: 40 });
  });
  assert.deepEqual(sent.map(([path]) => path.slice(4)), [
    "reserve", "reserve", "extend", "extend", "complete", "complete",
  ]);
  assert.deepEqual(sent[0], sent[1]);
  await expectUsed(entity, 1, 40);
});

test("a request that does not fit is denied and takes nothing", async () => {
  const entity = newEntity();
  await client.withLease({ entity, resource: "counted", costs: { calls: 1, tokens: 99_999_990 } }, async (lease) => {
    assert.equal(lease.limits.find((s) => s.limit === "tokens").available, 10);
    const denied = await client
      .withLease({ entity, resource: "counted", costs: { tokens: 11 } }, () => assert.fail("the function ran"))
      .catch((error) => error);
    assert.ok(denied instanceof Denied, String(denied));
    assert.ok(denied.retryAfterMs > 0);
    assert.deepEqual(denied.exceeded.map((s) => [s.limit, s.available]), [["tokens", 10]]);
    await client.withLease({ entity, resource: "counted", costs: { tokens: 10 } }, (other) => other.giveBack());
    lease.giveBack();
  });
  await expectUsed(entity, 0, 0);
});

test("five calls run at once, and the sixth is denied until one ends", { skip: noSlots }, async () => {
  const entity = newEntity();
  const held = [];
  for (let n = 0; n < slots; n++) held.push(await client.reserve({ entity, resource: "counted" }));
  await assert.rejects(client.reserve({ entity, resource: "counted" }), (denied) =>
    denied instanceof Denied && denied.exceeded.map((s) => s.limit).join() === "parallel");
  await client.cancel(held.pop().lease_id);
  held.push(await client.reserve({ entity, resource: "counted" }));
  for (const lease of held) await client.complete(lease.lease_id);
  await expectUsed(entity, 0, 0);
});

// holdPastTimeout holds all slots for longer than their timeout, and reports whether none was lost.
async function holdPastTimeout() {
  const entity = newEntity();
  let kept = true;
  let waiting = slots;
  let goOn;
  const checked = new Promise((resolve) => (goOn = resolve));
  const hold = async (lease) => {
    await pause(lease.answer.holds_until_unix_ms + 500 - Date.now());
    if (--waiting === 0) {
      kept = await client.reserve({ entity, resource: "llm" }).then(() => false, (e) => e instanceof Denied);
      goOn();
    }
    await checked;
  };
  await Promise.all(Array.from({ length: slots }, () =>
    client.withLease({ entity, resource: "llm", costs: { rpm: 1 } }, hold)));
  assert.equal((await used(entity, "llm")).parallel, kept ? 0 : 1);
  return kept;
}

test("slots are held past their timeout while functions run", { skip: noSlots }, async () => {
  // On a machine that stops for a second, a slot can be lost although it is extended.
  assert.ok((await holdPastTimeout()) || (await holdPastTimeout()) || (await holdPastTimeout()));
});

test("a slot that nobody extends times out", { skip: noSlots }, async () => {
  const entity = newEntity();
  const lease = await client.reserve({ entity, resource: "llm" });
  await until(async () => (await used(entity, "llm")).parallel === 0);
  assert.ok(Date.now() >= lease.holds_until_unix_ms - 1000);
});

test("waitMs tries again with new IDs until there is room", async () => {
  const entity = newEntity();
  const first = await client.reserve({ entity, resource: "counted", costs: { tokens: 99_999_999 } });
  const ids = [];
  const waiting = new Client({
    url,
    fetch: async (to, init) => {
      ids.push(JSON.parse(init.body).lease_id);
      const answer = await fetch(to, init);
      if (answer.status === 429 && ids.length === 1) await client.cancel(first.lease_id);
      return answer;
    },
  });
  const lease = await waiting.reserve({ entity, resource: "counted", costs: { tokens: 10 }, waitMs: PATIENCE_MS });
  assert.ok(ids.length >= 2 && new Set(ids).size === ids.length, ids.join());
  await client.cancel(lease.lease_id);
  await client.reserve({ entity, resource: "counted", costs: { tokens: 100_000_000 } });
  await assert.rejects(client.reserve({ entity, resource: "counted", costs: { tokens: 10 }, waitMs: 100 }), Denied);
});

test("failures have codes, and none is a denial", async () => {
  const entity = newEntity();
  const reserve = (resource, units, by = entity) => () => client.reserve({ entity: by, resource, costs: units });
  const cases = [
    [reserve("counted", { tokns: 1 }), "unknown limit"],
    [reserve("counted", { tokens: 100_000_001 }), "never satisfiable"],
    [reserve("nothing", { tokens: 1 }), "no limits configured"],
    [reserve("counted", { tokens: 1 }, ""), "invalid"],
    [reserve("counted", { tokens: 1.5 }), "invalid"],
    [reserve("counted", { tokens: 2 ** 60 }), "invalid"],
    [() => client.cancel(leaseId()), "unknown lease"],
  ];
  for (const [call, code] of cases) await assert.rejects(call(), (error) => hasCode(error, code), code);
  const lease = await client.reserve({ entity, resource: "counted", costs });
  await client.cancel(lease.lease_id);
  await assert.rejects(client.extend(lease.lease_id), (error) => hasCode(error, "ended"));
  assert.equal((await client.explain(entity, "counted")).limits.tokens.capacity, 100_000_000);
});

test("a report that is refused is told, and the slot returns", async () => {
  for (const actuals of [{ tokns: 3 }, { tokens: 0.5 }]) {
    const entity = newEntity();
    const told = [];
    const c = new Client({ url, warn: (message) => told.push(message) });
    await c.withLease({ entity, resource: "counted", costs }, (lease) => lease.report(actuals));
    assert.match(told.join(), /the report is wrong/);
    await expectUsed(entity, 1, 500);
  }
});

test("a lease grows while its function runs", async () => {
  const entity = newEntity();
  await client.withLease({ entity, resource: "counted", costs }, async (lease) => {
    await lease.adjust({ tokens: 700 });
    await lease.adjust({ tokens: 900 });
    assert.equal((await used(entity)).tokens, 900);
  });
  await expectUsed(entity, 1, 900);
});

test("a job that is taken over is charged once, and not run again after it was settled", async () => {
  const entity = newEntity();
  const id = await jobLeaseId(entity, 1, Date.now());
  const request = { entity, resource: "counted", costs, leaseId: id };
  await client.reserve(request); // and then the worker crashes
  await client.withLease(request, (lease) => {
    assert.equal(lease.answer.replay, true);
    lease.report({ tokens: 40 });
  });
  await expectUsed(entity, 1, 40);
  await assert.rejects(client.withLease(request, () => assert.fail("it ran")), (e) => hasCode(e, "ended"));
});

test("a clock that is wrong is corrected by the server's", { skip: noSlots }, async (t) => {
  const entity = newEntity();
  const real = Date.now;
  t.after(() => (Date.now = real));
  for (const hours of [-1, 1]) {
    Date.now = () => real() + hours * 3_600_000;
    await client.withLease({ entity, resource: "counted", costs }, (lease) => lease.report({ tokens: 20 }));
  }
  Date.now = real;
  await expectUsed(entity, 2, 40);
});

test("a mistake in an option is an error at once", async () => {
  for (const options of [
    { url: "ftp://x" }, { url: "http://a:b@x" }, { attempts: 0 }, { attempts: NaN }, { timeoutMs: NaN },
    { timeoutMs: Infinity }, { backoffMs: -1 }, { onUnavailable: "deny" }, { token: "secret\n" }, { token: "sécret" },
  ]) assert.throws(() => new Client({ url, ...options }), TypeError, JSON.stringify(options));
  await assert.rejects(client.reserve({ entity: "any", resource: "counted", waitMs: NaN }), TypeError);
});

test("without a server a call is an error, or allowed if that is asked for", async () => {
  const none = createServer().listen(0, "127.0.0.1");
  await once(none, "listening");
  const at = { url: `http://127.0.0.1:${none.address().port}`, backoffMs: 1 };
  none.close();
  await once(none, "close");
  const request = { entity: "any", resource: "counted", costs };
  await assert.rejects(new Client(at).reserve(request), (error) => hasCode(error, "unavailable"));
  const open = new Client({ ...at, onUnavailable: "allow", warn: assert.fail });
  assert.equal(await open.withLease(request, async (lease) => (await lease.adjust(costs), lease.degraded)), true);
  await open.close();
});
