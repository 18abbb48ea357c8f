package main

import "fmt"

// memorySize is how many ended leases weir remembers by default: when it has so many, each
// completion makes it forget one.
const memorySize = 1_000_000

const manyKeys = 100_000

// items are all comparisons, in the order in which they are printed; those of throughput for each
// number of processors.
func items(procs []int) []item {
	return []item{
		hotItem("1000", 1_000, 8_000), hotItem("1000000", 1_000_000, 15_000),
		deniedItem("1000", 1_000), deniedItem("1000000", 1_000_000),
		keysItem(), cascadeItem(),
		throughputItem("hot", 1, procs), throughputItem("keys", manyKeys, procs),
		partsItem(), serverItem(),
	}
}

// hotItem is one bucket on one key, with so many live leases.
func hotItem(name string, live int, goal int64) item {
	x := item{
		name:  "hot/live=" + name,
		title: fmt.Sprintf("One bucket, one key, %s live leases", grouped(int64(live))),
		worlds: []worldSpec{
			{Name: worldWeir, Live: live, Remembered: memorySize, Keys: 1, Procs: 1},
			{Name: worldXRate, Keys: 1, Procs: 1},
		},
		sides: append(weirSides(), side{"x/time/rate, AllowN", 1, workTake}),
		ratios: []ratio{
			{over: 0, under: 3, goal: goal},
			{over: 1, under: 3, goal: goal},
		},
		note: "x/time/rate has no keys and no leases, and nothing is settled.",
	}
	if live <= 1000 {
		x.ratios[0].aim, x.ratios[1].aim = 3_000, 3_000
	}
	return x
}

// weirSides are what is measured of weir where there is one goroutine, in world 0.
func weirSides() []side {
	return []side{
		{"weir, reserve + complete", 0, workBoth},
		{"weir, reserve alone", 0, workReserve},
		{"weir, complete alone", 0, workComplete},
	}
}

// deniedItem is a bucket with nothing left, whose capacity the live leases have taken.
func deniedItem(name string, live int) item {
	return item{
		name:  "denied/live=" + name,
		title: fmt.Sprintf("The same, denied, %s live leases", grouped(int64(live))),
		worlds: []worldSpec{
			{Name: worldWeir, Live: live, Keys: 1, Procs: 1, Empty: true},
			{Name: worldXRate, Keys: 1, Procs: 1, Empty: true},
			{Name: worldGoLimiter, Keys: 1, Procs: 1, Empty: true},
			{Name: worldThrottled, Keys: 1, Procs: 1, Empty: true},
		},
		sides: []side{
			{"weir, reserve", 0, workDenied},
			{"x/time/rate, AllowN", 1, workTake},
			{"go-limiter, Take", 2, workTake},
			{"throttled, RateLimitCtx", 3, workTake},
		},
		ratios: []ratio{{over: 0, under: 1}, {over: 0, under: 2}, {over: 0, under: 3}},
		note: "weir's denial is an error with the status of every limit judged and when to retry; " +
			"AllowN says no.",
	}
}

// keysItem is one bucket on each of many keys.
func keysItem() item {
	return item{
		name:  "keys",
		title: fmt.Sprintf("One bucket on each of %s keys, 1,000 live leases", grouped(manyKeys)),
		worlds: []worldSpec{
			{Name: worldWeir, Live: 1_000, Remembered: memorySize, Keys: manyKeys, Procs: 1},
			{Name: worldGoLimiter, Keys: manyKeys, Procs: 1},
			{Name: worldThrottled, Keys: manyKeys, Procs: 1},
		},
		sides: append(weirSides(),
			side{"go-limiter, Take", 1, workTake}, side{"throttled, RateLimitCtx", 2, workTake}),
		ratios: []ratio{
			{over: 0, under: 3, goal: 6_000}, {over: 1, under: 3, goal: 6_000},
			{over: 0, under: 4}, {over: 1, under: 4},
		},
		note: "The keys come in the same shuffled order on every side. The rivals take no lease " +
			"and settle nothing.",
	}
}

// cascadeItem is four limits on an entity and the same on its parent.
func cascadeItem() item {
	return item{
		name:  "cascade",
		title: "Four limits on an entity and four on its parent, 1,000 live leases",
		worlds: []worldSpec{
			{Name: worldCascade, Live: 1_000, Remembered: memorySize, Keys: 1, Procs: 1},
			{Name: worldXRate, Keys: 1, Procs: 1},
		},
		sides: append(weirSides(),
			side{"x/time/rate, AllowN", 1, workTake}, side{"x/time/rate, AllowN on 8", 1, workEight}),
		ratios: []ratio{
			{over: 0, under: 3, goal: 25_000}, {over: 0, under: 4},
			{over: 1, under: 3}, {over: 1, under: 4},
		},
		note: "Two buckets, a window and concurrency, twice: eight judgements, all or nothing, and " +
			"a completion that names the tokens used. The eight of x/time/rate share one reading " +
			"of the clock; what seven of them took stays taken where the eighth denies.",
	}
}

// throughputItem is a goroutine for each processor, on weir and on all rivals.
func throughputItem(name string, keys int, procs []int) item {
	x := item{
		name:   "throughput/" + name,
		title:  fmt.Sprintf("Throughput, %s, 1,000 live leases", counted(keys, "key")),
		speeds: true,
		note: "ns/op is wall time over the operations of all goroutines. throttled gives up after ten " +
			"lost races by default; here it goes on.",
	}
	rivals := []side{
		{label: "go-limiter, Take", work: workTake},
		{label: "throttled, RateLimitCtx", work: workTake},
	}
	worlds := []string{worldGoLimiter, worldThrottled}
	if keys == 1 {
		rivals = append([]side{{label: "x/time/rate, AllowN", work: workTake}}, rivals...)
		worlds = append([]string{worldXRate}, worlds...)
	}
	for _, p := range procs {
		at := len(x.worlds)
		on := ", " + counted(p, "core")
		x.worlds = append(x.worlds, worldSpec{
			Name: worldWeir, Live: 1_000, Remembered: memorySize, Keys: keys, Procs: p,
		})
		x.sides = append(x.sides, side{"weir, reserve + complete" + on, at, workBoth})
		for i, rival := range rivals {
			x.worlds = append(x.worlds, worldSpec{Name: worlds[i], Keys: keys, Procs: p})
			x.sides = append(x.sides, side{rival.label + on, at + 1 + i, rival.work})
			x.ratios = append(x.ratios, ratio{over: at, under: at + 1 + i})
		}
	}
	return x
}

// counted is a number and what there are so many of.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(int64(n)) + " " + what + "s"
}
