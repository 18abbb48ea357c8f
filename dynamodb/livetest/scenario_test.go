package livetest

// What all scenarios have in common. A call asks ten units of the scarce limit on average.
const (
	scarceLimit = "tpm"
	slowLimit   = "slow-day"
	meanCost    = 10
	team        = "team"
)

// slowest is a limit that regains a milli-unit in 86.4 ms, and is never short.
var slowest = Limit{Capacity: 100_000, Refill: 1000, PeriodS: 86_400}

// scenarios are those that both sides play, sharded buckets in two ways, for so many processes of
// each side with so many calls a second each. The limits have so many percent of what fits a
// minute: in a moment, what the buckets begin with counts for more.
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

// limits are an entity's, with so many percent of the units that are asked in a second. The
// capacity is three seconds' worth, so that nothing is lost while a busy machine holds all
// processes up.
func limits(asked int64, percent int64) map[string]Limit {
	const whole = 8 // so that a shard gains whole milli-units in a millisecond
	refill := asked * percent / 100
	refill -= refill % whole
	return map[string]Limit{
		scarceLimit: {Capacity: 3 * refill, Refill: refill, PeriodS: 1}, slowLimit: slowest,
	}
}

func changes(at int64, entity string, shards int, to map[string]Limit) Action {
	return Action{AtMS: at, Do: Changed, Entity: entity, Shards: shards, Limits: to}
}

// flat is one bucket; Python raises it.
func flat(rate int, asked int64) scenario {
	return scenario{
		name: "flat", offer: offer(rate, team), scarce: map[string]string{scarceLimit: team},
		world: World{Limits: map[string]map[string]Limit{team: limits(asked, 50)}},
		actions: map[string][]Action{
			"python-0": {changes(50, team, 1, limits(asked, 64))},
		},
	}
}

// cascade is two children and the parent, which is asked for more than it has; weir lowers it.
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

// sharded is one bucket on four shards; weir raises it.
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

// doubled is one bucket whose shards Python doubles; then it lowers the limits.
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
