package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"
)

const (
	manyKeys = 100_000
	// storeCallers is the number of callers on DynamoDB, and storeEntities that of separate
	// entities.
	storeCallers  = 64
	storeEntities = 1000
)

// comparisons returns all comparisons, in the order in which they are printed. The throughput
// comparisons run for each number of processors.
func comparisons(procs []int) []*comparison {
	out := []*comparison{
		hot(1000, 8, 3), hot(1_000_000, 15, 0), deny(1000), deny(1_000_000), keys(), cascade(),
		throughput("hot", 1, procs), throughput("keys", manyKeys, procs), partsAlone(), server(),
		onTable("dynamodb/hot", "one bucket, %d callers", []string{"hot"}, 1, ""),
		onTable("dynamodb/children", "%d children of one parent, a caller for each",
			entityNames(storeCallers), 1, "org"),
		onTable("dynamodb/entities", number(storeEntities, 0)+" separate entities, %d callers",
			entityNames(storeEntities), storeEntities, ""),
	}
	for _, callers := range []int{1, 64, 512} {
		out = append(out, onLedger(callers))
	}
	return out
}

// entityNames returns n names in a shuffled order, which is the same in every run.
func entityNames(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("tenant-%06d", i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// inMemory returns the store of the comparisons in process memory.
func inMemory() *storeSetup {
	return &storeSetup{
		columns: totalColumns(), operation: "op",
		rounds: func(s *settings) string { return counted(s.rounds, "round") + " of " + s.slice.String() + "." },
	}
}

// newWeir returns a weir in process memory, in the state of a process that has run for a while.
func newWeir(kind string, live, entities, procs int) *contestant {
	return &contestant{spec: spec{
		Kind: kind, Entities: entityNames(entities), Callers: procs, Procs: procs, Live: live, Ended: defaultMost,
	}}
}

// newRival returns a rival in process memory.
func newRival(kind string, entities, procs int) *contestant {
	return &contestant{spec: spec{
		Kind: kind, Entities: entityNames(entities), Callers: procs, Procs: procs,
	}}
}

// weirSides returns the sides of a weir with one caller.
func weirSides(by *contestant) []side {
	return []side{
		{"weir, reserve + complete", by, workBoth},
		{"weir, reserve alone", by, workReserve},
		{"weir, complete alone", by, workComplete},
	}
}

// hot compares one bucket on one key, with a number of live leases.
func hot(live int, goal, aim float64) *comparison {
	return &comparison{
		name: fmt.Sprintf("hot/live=%d", live), store: inMemory(),
		title: "One bucket, one key, " + counted(live, "live lease"),
		note:  "x/time/rate has no keys and no leases, and nothing is settled.",
		sides: append(weirSides(newWeir(kindWeir, live, 1, 1)),
			side{"x/time/rate, AllowN", newRival(kindXRate, 1, 1), workTake}),
		ratios: []ratio{{over: 0, under: 3, goal: goal, aim: aim}, {over: 1, under: 3, goal: goal, aim: aim}},
	}
}

// deny compares denials by a bucket whose units are all taken by the live leases.
func deny(live int) *comparison {
	weir := newWeir(kindWeir, live, 1, 1)
	weir.spec.Empty, weir.spec.Ended = true, 0
	c := &comparison{
		name: fmt.Sprintf("denied/live=%d", live), store: inMemory(),
		title: "The same, denied, " + counted(live, "live lease"),
		note: "weir's denial is an error with the status of every limit judged and when to retry; AllowN " +
			"says no.",
		sides:  []side{{"weir, reserve", weir, workReserve}},
		ratios: against(0, 1, 2, 3),
	}
	for _, r := range rivals() {
		by := newRival(r.kind, 1, 1)
		by.spec.Empty = true
		c.sides = append(c.sides, side{r.label, by, workTake})
	}
	return c
}

// keys compares one bucket on each of many keys.
func keys() *comparison {
	c := &comparison{
		name: "keys", store: inMemory(),
		title: fmt.Sprintf("One bucket on each of %s, 1,000 live leases", counted(manyKeys, "key")),
		note: "The keys come in the same shuffled order on every side. The rivals take no lease and settle " +
			"nothing.",
		sides: weirSides(newWeir(kindWeir, 1000, manyKeys, 1)),
		ratios: []ratio{
			{over: 0, under: 3, goal: 6}, {over: 1, under: 3, goal: 6}, {over: 0, under: 4}, {over: 1, under: 4},
		},
	}
	for _, r := range rivals() {
		if r.keyed {
			c.sides = append(c.sides, side{r.label, newRival(r.kind, manyKeys, 1), workTake})
		}
	}
	return c
}

// cascade compares four limits on an entity and the same four on its parent.
func cascade() *comparison {
	weir, rate := newWeir(kindCascade, 1000, 1, 1), newRival(kindXRate, 1, 1)
	weir.spec.Entities = []string{"bot"}
	return &comparison{
		name: "cascade", store: inMemory(),
		title: "Four limits on an entity and four on its parent, 1,000 live leases",
		note: "Two buckets, a window and a concurrency limit, on both entities: eight limits are judged, all or " +
			"nothing, and the completion names the tokens used. The eight limiters of x/time/rate share one reading " +
			"of the clock; if the eighth denies, the units of the other seven stay taken.",
		sides: append(weirSides(weir),
			side{"x/time/rate, AllowN", rate, workTake}, side{"x/time/rate, AllowN on 8", rate, workEight}),
		ratios: append([]ratio{{over: 0, under: 3, goal: 25}, {over: 0, under: 4}}, against(1, 3, 4)...),
	}
}

// throughput compares one caller for each processor, on weir and on all rivals that have as many
// keys.
func throughput(name string, entities int, procs []int) *comparison {
	c := &comparison{
		name: "throughput/" + name, store: inMemory(),
		title: fmt.Sprintf("Throughput, %s, 1,000 live leases", counted(entities, "key")),
		note: "ns/op is wall time over the operations of all goroutines. throttled gives up after ten lost " +
			"races by default; here it does not give up.",
	}
	for _, p := range procs {
		at, on := len(c.sides), ", "+counted(p, "core")
		weir := newWeir(kindWeir, 1000, entities, p)
		c.sides = append(c.sides, side{"weir, reserve + complete" + on, weir, workBoth})
		for _, r := range rivals() {
			if r.keyed || entities == 1 {
				c.ratios = append(c.ratios, against(at, len(c.sides))...)
				c.sides = append(c.sides, side{r.label + on, newRival(r.kind, entities, p), workTake})
			}
		}
	}
	return c
}

// partsAlone measures the parts of a reservation that can be called from outside.
func partsAlone() *comparison {
	weir, plans := newWeir(kindWeir, 1000, 1, 1), newWeir(kindPlans, 1000, 1, 1)
	alone := newRival(kindParts, 1, 1)
	return &comparison{
		name: "parts", store: inMemory(),
		title: "The parts of reserve + complete: one bucket, one key, 1,000 live leases",
		note: "Over a store that plans and then admits without judging there remain the clock, the ID, the " +
			"fingerprint, the resolution from the cache, the table of leases and the handle. The store's " +
			"own calls are made by hand here, with a plan that has been made.",
		sides: []side{
			{"all: weir, reserve + complete", weir, workBoth},
			{"all: reserve alone", weir, workReserve},
			{"all: complete alone", weir, workComplete},
			{"over a store that only plans, reserve + complete", plans, workBoth},
			{"over a store that only plans, reserve", plans, workReserve},
			{"over a store that only plans, complete", plans, workComplete},
			{"time.Now", alone, "clock"},
			{"weir.NewLeaseID", alone, "id"},
			{"a weir.Request with its Costs", alone, "request"},
			{"memory Store.Reserve", alone, "store"},
			{"memory Store.Update", alone, "settle"},
		},
	}
}

// server compares the HTTP handler with one that does nothing. With two processors, the server and
// the generator of load have one each.
func server() *comparison {
	pinned := func(cpu string) string {
		if runtime.NumCPU() < 2 {
			return ""
		}
		return cpu
	}
	served := func(kind string, live, ended int) *contestant {
		return &contestant{
			spec: spec{
				Kind: kindLoad, Entities: []string{"acme"}, Callers: connections, Procs: 1, CPUs: pinned("1"),
			},
			server: &spec{
				Kind: kind, Entities: []string{"acme"}, Callers: 1, Procs: 1, CPUs: pinned("0"),
				Live: live, Ended: ended,
			},
		}
	}
	return &comparison{
		name: "server", store: inMemory(),
		title: fmt.Sprintf("HTTP: reserve and complete in turn, %d connections, one core for the server", connections),
		note: "The other handler reads the whole body and writes the bytes and headers that weir would. CPU, " +
			"allocs and B are the server's; the generator has a core of its own.",
		sides: []side{
			{"weir's handler", served(kindHandler, 1000, defaultMost), workLoad},
			{"a handler that does nothing", served(kindNoHandler, 0, 0), workLoad},
		},
		ratios: []ratio{{over: 0, under: 1, of: speed, goal: 0.6, aim: 0.8}},
	}
}

// onStore returns a spec for DynamoDB with the usual number of callers.
func onStore(kind string, entities []string, each int) spec {
	return spec{Kind: kind, Entities: entities, Each: each, Callers: storeCallers}
}

// onTable compares weir on a table, with leases in the process and in the table, with the Python
// library and, unless all callers want one entity, with the bare SDK making the same writes as weir
// with leases in the process. The library runs in one process, as most users run it, and in one for
// each processor, which it needs to use all of them.
func onTable(name, title string, entities []string, each int, parent string) *comparison {
	single := len(entities) == 1
	by := func(kind string, processes int, processLeases bool) *contestant {
		c := &contestant{spec: onStore(kind, entities, each), processes: processes}
		c.spec.Parent, c.spec.ProcessLeases = parent, processLeases
		return c
	}
	process, table := by(kindTable, 1, true), by(kindTable, 1, false)
	c := &comparison{
		name: name, title: "DynamoDB: " + fmt.Sprintf(title, storeCallers),
		sides: []side{
			{"weir, leases=process, reserve", process, workReserve},
			{"weir, leases=process, reserve + complete", process, workBoth},
			{"weir, leases=table, reserve", table, workReserve},
			{"weir, leases=table, reserve + complete", table, workBoth},
		},
		store: &storeSetup{
			open: openDynamoDB, operation: "call",
			warm:    func(s *settings) command { return command{Ops: s.warm} },
			columns: storeColumns("call", "DynamoDB Local", countWrites, countParents, countReads),
			rounds: func(s *settings) string {
				return fmt.Sprintf("%s of %s, each side after %s.", counted(s.runs, "round"), s.length, counted(s.warm, "call"))
			},
		},
	}
	const overProcess, overTable = 0, 2
	var goalProcess, goalTable float64
	switch {
	case single:
		goalProcess, goalTable = 20, 10
		c.note = "weir takes all calls that arrive during a write along in the next one; the Python library " +
			"makes a write for each. Completing with what was reserved writes nothing in the library and with " +
			"leases=process, and the lease's record with leases=table."
	case parent != "":
		c.note = "For each call the bare SDK makes the child's write; as often as weir did for the calls that its " +
			"writes were copied from, it makes the parent's too, at once with the child's, and waits for both. " +
			"It writes no lease records."
	default:
		c.note = "Each caller takes all entities in turn, and begins elsewhere. The bare SDK writes no lease records."
	}
	if !single {
		bare := len(c.sides)
		c.sides = append(c.sides, side{"bare SDK, the same writes", by(kindBareSDK, 1, true), workReserve})
		c.ratios = []ratio{
			{over: overProcess, under: bare, of: speed, goal: 0.9},
			{over: overProcess + 1, under: bare, of: speed, goal: 0.9},
			{over: overTable, under: bare, of: speed},
		}
	}
	processes := []int{1}
	if n := min(runtime.NumCPU(), storeCallers); n > 1 {
		processes = append(processes, n)
	}
	for _, n := range processes {
		label := fmt.Sprintf("zae-limiter 0.17.0, acquire, %d process", n)
		if n > 1 {
			label += "es"
		}
		c.ratios = append(c.ratios,
			ratio{over: overProcess, under: len(c.sides), of: speed, goal: goalProcess},
			ratio{over: overTable, under: len(c.sides), of: speed, goal: goalTable})
		c.sides = append(c.sides, side{label, by(kindPython, n, false), workReserve})
	}
	return c
}

// The requests that are counted on TigerBeetle.
const (
	countCalls  = "calls"
	countEvents = "events"
)

// onLedger compares weir on TigerBeetle with TigerBeetle's own client.
func onLedger(callers int) *comparison {
	by := func(kind string) *contestant {
		return &contestant{spec: spec{Kind: kind, Entities: []string{"hot"}, Callers: callers}}
	}
	return &comparison{
		name:  fmt.Sprintf("tigerbeetle/callers=%d", callers),
		title: "TigerBeetle: a lease of four limits, " + counted(callers, "caller"),
		note: "A lease of a bucket, a window, a concurrency limit and a budget, which all callers share and which " +
			"are never used up; it is reserved and completed with less. The raw client makes the same calls with " +
			"the same events, copied from weir, and has nothing else to do.",
		sides: []side{
			{"weir, reserve + complete", by(kindLedger), workBoth},
			{"raw client, the same transfers", by(kindRawLedger), workBoth},
		},
		ratios: []ratio{
			{over: 0, under: 1, of: speed, goal: 0.8}, {over: 0, under: 1, of: p50}, {over: 0, under: 1, of: p99},
		},
		sameCounts: true,
		store: &storeSetup{
			open: openCluster, operation: "lease",
			warm:    func(s *settings) command { return command{NS: warmUp(s).Nanoseconds()} },
			columns: storeColumns("lease", "TigerBeetle", countCalls, countEvents),
			rounds: func(s *settings) string {
				return fmt.Sprintf("%s of %s, each side after %s.", counted(s.runs, "round"), s.length, warmUp(s))
			},
		},
	}
}

// warmUp returns how long a contestant on TigerBeetle is warmed up.
func warmUp(s *settings) time.Duration { return s.length / 5 }

// clusterVariable names the TigerBeetle cluster, as it does for weir's own tests: its replicas'
// addresses, with commas between them.
const clusterVariable = "WEIR_TEST_TIGERBEETLE"

// openCluster uses the cluster that the variable names. Contestants choose new namespaces
// themselves.
func openCluster(_ context.Context, s *settings) (*instance, error) {
	text := os.Getenv(clusterVariable)
	if text == "" {
		return nil, fmt.Errorf("%w: %s names no TigerBeetle server", errLeftOut, clusterVariable)
	}
	return &instance{
		prepare: func(_ context.Context, _ string, sp *spec) error {
			sp.Addresses, sp.WarmNS = strings.Split(text, ","), s.length.Nanoseconds()
			return nil
		},
		cpu: func() int64 { return 0 }, close: func() {},
	}, nil
}
