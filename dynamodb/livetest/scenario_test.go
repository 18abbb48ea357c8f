package livetest

// The names and costs of all scenarios. A call asks for ten units of the scarce limit on average.
const (
	scarceLimit = "tpm"
	slowLimit   = "slow-day"
	meanCost    = 10
	team        = "team"
)

// slowest regains a milli-unit in 86.4 ms, and is never short.
var slowest = Limit{Capacity: 100_000, Refill: 1000, PeriodS: 86_400}

// scenarios returns the scenarios of both sides, for a number of processes on each side with a
// number of calls a second each. The limits admit the given percentage of what a minute's calls ask
// for: in a shorter run the initial balances would count for more.
func scenarios(rate, each, percent int) []scenario {
	asked := int64(rate * 2 * each * meanCost * percent / 100)
	return []scenario{
		flat(rate, asked), cascade(rate, asked), sharded(rate, asked), doubled(rate, asked),
	}
}

func offer(rate int, entities ...string) Spec {
	return Spec{
		Namespace: "default", Entities: entities, Resource: "gpt-4o",
		Costs: map[string][]int64{scarceLimit: {5, 10, 15}, slowLimit: {1}},
		Rate:  rate, Inflight: 64,
		Mix:    map[string]int{Keep: 60, Up: 15, Down: 15, Cancel: 10},
		HoldMS: [2]int{20, 300}, AdjustPercent: 40,
	}
}

// limits returns an entity's limits, which refill the given percentage of the units asked in a
// second. The capacity is three times that, so that no gain is lost while a busy machine delays all
// processes.
func limits(asked int64, percent int64) map[string]Limit {
	const whole = 8 // a shard then gains whole milli-units in a millisecond
	refill := asked * percent / 100
	refill -= refill % whole
	return map[string]Limit{
		scarceLimit: {Capacity: 3 * refill, Refill: refill, PeriodS: 1}, slowLimit: slowest,
	}
}

func changes(at int64, entity string, shards int, to map[string]Limit) Action {
	return Action{AtMS: at, Do: Changed, Entity: entity, Shards: shards, Limits: to}
}

// flat returns a scenario with one bucket, whose limit Python raises.
func flat(rate int, asked int64) scenario {
	return scenario{
		name: "flat", offer: offer(rate, team), scarce: map[string]string{scarceLimit: team},
		world: World{Limits: map[string]map[string]Limit{team: limits(asked, 50)}},
		actions: map[string][]Action{
			"python-0": {changes(50, team, 1, limits(asked, 64))},
		},
	}
}

// cascade returns a scenario with two children and a parent. The parent is asked for more than it
// has, and weir lowers its limit.
func cascade(rate int, asked int64) scenario {
	return scenario{
		name: "cascade", offer: offer(rate, "child-a", "child-b"), scarce: map[string]string{scarceLimit: team},
		world: World{
			Limits: map[string]map[string]Limit{
				team: limits(asked, 56), "child-a": limits(asked, 36), "child-b": limits(asked, 48),
			},
			Parents: map[string]string{"child-a": team, "child-b": team},
		},
		actions: map[string][]Action{
			"go-0": {changes(50, team, 1, limits(asked, 48))},
		},
	}
}

// sharded returns a scenario with one bucket on four shards, whose limit weir raises.
func sharded(rate int, asked int64) scenario {
	return scenario{
		name: "sharded", offer: offer(rate, team), scarce: map[string]string{scarceLimit: team},
		world:  World{Limits: map[string]map[string]Limit{team: limits(asked, 34)}},
		shards: map[string]int{team: 4},
		actions: map[string][]Action{
			"go-0": {changes(50, team, 4, limits(asked, 42))},
		},
	}
}

// doubled returns a scenario with one bucket. Python doubles its shards and then lowers its limit.
func doubled(rate int, asked int64) scenario {
	return scenario{
		name: "doubled", offer: offer(rate, team), scarce: map[string]string{scarceLimit: team},
		world: World{Limits: map[string]map[string]Limit{team: limits(asked, 42)}},
		actions: map[string][]Action{
			"python-0": {
				{AtMS: 25, Do: Doubled, Entity: team, Shards: 1},
				changes(50, team, 2, limits(asked, 34)),
			},
		},
		doubles: 1,
	}
}
