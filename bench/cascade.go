package main

import (
	"time"

	"github.com/weir-limiter/weir"
)

// cascadeWorld is an entity and its parent with the same four limits each.
func cascadeWorld(spec *worldSpec) (*world, error) {
	l, err := openLimiter(
		weir.Limit{Name: "rpm", Capacity: plenty},
		weir.Limit{Name: "tpm", Capacity: plentyTokens},
		weir.Limit{Name: "recent", Kind: weir.Window, Capacity: plenty, Window: time.Minute},
		weir.Limit{Name: "parallel", Kind: weir.Concurrency, Capacity: plenty, Timeout: time.Hour},
	)
	if err != nil {
		return nil, err
	}
	// A concurrency limit is charged without being named.
	requests := []weir.Request{{
		Entity: "bot", Resource: "llm", Costs: weir.Costs{"rpm": 1, "tpm": 500, "recent": 1},
	}}
	return ringWorld(spec, l, requests, []weir.Costs{{"tpm": 412}})
}
