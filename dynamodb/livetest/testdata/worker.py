"""One process of the live tests on the Python library zae-limiter 0.17.

The only argument is a JSON object, the same as a Go worker gets (see spec.go). Each event is written to
the log as a line with a JSON object (see record.go). The process says "ready" on its output, waits for a line
with the start in Unix microseconds on its input, and says "done".
"""

import asyncio
import contextvars
import json
import random
import re
import sys
import time
import warnings

warnings.simplefilter("ignore")

from zae_limiter import Limit, RateLimiter, RateLimitExceeded, schema  # noqa: E402
from zae_limiter.lease import Lease  # noqa: E402
from zae_limiter.repository import Repository  # noqa: E402


class Undo(Exception):
    """Makes the library roll a reservation back."""


def now_us():
    return time.time_ns() // 1000


def limits_of(definitions):
    return [
        Limit.custom(name, capacity=d["capacity"], refill_amount=d["refill"], refill_period_seconds=d["period_s"])
        for name, d in sorted(definitions.items())
    ]


# The shares that the commit in progress computes with, by bucket item and limit. The request does not have them.
SHARES = contextvars.ContextVar("shares", default={})


def shares_of(repository, entries):
    shares = {}
    for entry in entries:
        if entry._original_tokens_milli is None:
            continue
        state, now = entry.state, repository._now_ms()
        key = schema.pk_bucket(repository.namespace_id, entry.entity_id, entry.resource, entry._shard_id)
        shares.setdefault(key, {})[entry.limit.name] = {
            "cp": state.ceiling_milli(now), "ra": state.effective_refill_amount_milli(now),
            "rp": state.effective_refill_period_ms(now), "tk": entry._original_tokens_milli,
        }
    return shares


def watch_commits():
    commit = Lease._commit_initial

    async def watched(lease):
        token = SHARES.set(shares_of(lease.repository, [*lease.entries, *lease._carriers]))
        try:
            return await commit(lease)
        finally:
            SHARES.reset(token)

    Lease._commit_initial = watched


def terms(expression, clause):
    """The parts of one clause of an update expression."""
    found = re.search(rf"\b{clause} (.*?)(?= (?:SET|ADD|REMOVE|DELETE) |$)", expression)
    return found.group(1).split(", ") if found else []


def note_of(update):
    """What a write to a bucket item credits, read from the request; None if it credits nothing."""
    key, names = update["Key"], update.get("ExpressionAttributeNames", {})
    if key["SK"]["S"] != "#STATE":
        return None
    values, credit = update.get("ExpressionAttributeValues", {}), {}
    for term in terms(update["UpdateExpression"], "ADD"):
        alias, value = term.split(" ")
        name = names.get(alias, alias)
        if name.startswith("b_") and name[-3:] in ("_tk", "_tc"):
            credit[name[2:-3]] = credit.get(name[2:-3], 0) + int(values[value]["N"])
    record = {"k": "write", "pk": key["PK"]["S"]}
    if "#rf = :now" in update["UpdateExpression"] and ":expected_rf" in values:
        record.update({"from": int(values[":expected_rf"]["N"]), "to": int(values[":now"]["N"])})
        record["share"] = SHARES.get().get(record["pk"], {})
    elif not any(credit.values()):
        return None
    record["credit"] = credit
    return record


def made_of(item):
    if item.get("SK", {}).get("S") != "#STATE":
        return None
    credit = {}
    for name, value in item.items():
        if name.startswith("b_") and name[-3:] in ("_tk", "_tc"):
            credit[name[2:-3]] = credit.get(name[2:-3], 0) + int(value["N"])
    return {"k": "made", "pk": item["PK"]["S"], "to": int(item["rf"]["N"]), "credit": credit}


class Worker:
    def __init__(self, spec):
        self.spec = spec
        self.log = open(spec["log"], "w", encoding="utf-8")
        self.random = random.Random(spec["seed"])
        self.offered = self.dropped = self.inflight = 0
        self.late_us = 0

    def write(self, record):
        record["p"] = self.spec["process"]
        self.log.write(json.dumps(record) + "\n")

    async def open(self):
        self.repository = await Repository.connect(
            self.spec["namespace"], stack=self.spec["table"],
            region="us-east-1", endpoint_url=self.spec["endpoint"],
        )
        self.limiter = RateLimiter(self.repository)
        self.watch(await self.repository._get_client())

    def watch(self, client):
        """Logs what this process writes, so that the checker can add it all up."""
        watch_commits()
        for name in ("update_item", "put_item", "transact_write_items"):
            setattr(client, name, self.watched(getattr(client, name)))

    def watched(self, method):
        async def call(**request):
            before = now_us()
            answer = await method(**request)
            for one in request.get("TransactItems", [request]):
                one = one.get("Update") or one.get("Put") or one
                note = None
                if "UpdateExpression" in one:
                    note = note_of(one)
                elif "Item" in one:
                    note = made_of(one["Item"])
                if note is not None:
                    note.update(b=before, a=now_us())
                    self.write(note)
            return answer

        return call

    async def refilled(self, entity, shards):
        """The earliest rf of a bucket's items."""
        client, found = await self.repository._get_client(), []
        for shard in range(shards):
            key = schema.pk_bucket(self.repository.namespace_id, entity, self.spec["resource"], shard)
            answer = await client.get_item(
                TableName=self.repository.table_name, ConsistentRead=True,
                Key={"PK": {"S": key}, "SK": {"S": schema.sk_state()}},
            )
            if "Item" in answer:
                found.append(int(answer["Item"]["rf"]["N"]))
        return min(found, default=0)

    async def run(self):
        start = int(await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline))
        tasks = {asyncio.create_task(self.act(start, action)) for action in self.spec.get("actions") or []}
        interval = 1e6 / self.spec["rate"]
        total = int(self.spec["rate"] * self.spec["seconds"])
        for i in range(total):
            due = start + int((i + self.random.random()) * interval)
            wait = due - now_us()
            if wait > 0:
                await asyncio.sleep(wait / 1e6)
            self.late_us = max(self.late_us, now_us() - due)
            self.offered += 1
            if self.inflight >= self.spec["inflight"]:
                self.dropped += 1
                continue
            tasks.add(asyncio.create_task(self.call()))
            tasks = {t for t in tasks if not t.done()}
        if tasks:
            await asyncio.wait(tasks, timeout=30)
        self.write({"k": "end", "offered": self.offered, "dropped": self.dropped, "late_us": self.late_us})
        self.log.close()
        await self.limiter.close()

    async def call(self):
        spec, pick = self.spec, self.random
        entity = pick.choice(spec["entities"])
        costs = {name: pick.choice(choices) for name, choices in sorted(spec["costs"].items())}
        verb = pick.choices(["complete", "up", "down", "cancel"], [spec["mix"].get(v, 0) for v in
                            ("complete", "up", "down", "cancel")])[0]
        hold = pick.randint(*spec["hold_ms"])
        totals = self.totals(costs, verb)
        record = {"k": "call", "e": entity, "r": spec["resource"], "costs": costs, "b": now_us()}
        self.inflight += 1
        try:
            async with self.limiter.acquire(entity, spec["resource"], costs) as lease:
                record["a"] = now_us()
                record["v"] = "admitted"
                if verb != "complete":
                    await asyncio.sleep(hold / 1e3)
                    record["settle"] = {"totals": totals, "b": now_us()}
                    delta = {n: totals[n] - costs[n] for n in costs if totals[n] != costs[n]}
                    if verb == "cancel":
                        raise Undo
                    if delta:
                        await lease.adjust(**delta)
            if "settle" in record:
                record["settle"]["a"] = now_us()
        except Undo:
            record["settle"]["a"] = now_us()
        except RateLimitExceeded:
            record.update(a=now_us(), v="denied")
        except Exception as error:  # the checker needs every error
            where = record["settle"] if "settle" in record else record
            where["a"] = now_us()
            where["err"] = f"{type(error).__name__}: {error}"
            record.setdefault("v", "error")
        finally:
            self.inflight -= 1
        self.write(record)

    def totals(self, costs, verb):
        if verb == "cancel":
            return dict.fromkeys(costs, 0)
        by = {"up": 1, "down": -1}.get(verb, 0)
        return {n: c + by * (c * self.spec["adjust_percent"] // 100) for n, c in costs.items()}

    async def act(self, start, action):
        """Changes limits or doubles shards once, at its time."""
        await asyncio.sleep(max(0, start + action["at_ms"] * 1000 - now_us()) / 1e6)
        record = {"k": action["do"], "e": action["entity"], "r": self.spec["resource"], "b": now_us()}
        entity, resource = action["entity"], self.spec["resource"]
        if action["do"] == "limits":
            record["set"] = action["limits"]
            record["rf"] = await self.refilled(entity, action["shards"])
            await self.limiter.set_limits(entity, limits_of(action["limits"]), resource=resource)
        elif action["do"] == "double":
            doubled = await self.repository.bump_shard_count(entity, resource, action["shards"])
            record["shards"] = [action["shards"], doubled]
        record["a"] = now_us()
        self.write(record)


async def main():
    worker = Worker(json.loads(sys.argv[1]))
    await worker.open()
    print("ready", flush=True)
    await worker.run()
    print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
