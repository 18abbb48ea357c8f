package main

import "fmt"

// The worlds.
const (
	worldWeir      = "weir"
	worldCascade   = "cascade"
	worldServer    = "server"
	worldPlain     = "plain server"
	worldLoad      = "load"
	worldParts     = "parts"
	worldNowhere   = "nowhere"
	worldXRate     = "x/time/rate"
	worldGoLimiter = "go-limiter"
	worldThrottled = "throttled"
)

// buildWorld sets up a world by its name.
func buildWorld(spec *worldSpec) (*world, error) {
	if spec.Keys < 1 {
		return nil, fmt.Errorf("keys %d: must be above zero", spec.Keys)
	}
	switch spec.Name {
	case worldWeir:
		return weirWorld(spec)
	case worldCascade:
		return cascadeWorld(spec)
	case worldServer, worldPlain:
		return serverWorld(spec)
	case worldLoad:
		return loadWorld(spec)
	case worldParts:
		return partsWorld()
	case worldNowhere:
		return nowhereWorld(spec)
	case worldXRate:
		return xrateWorld(spec)
	case worldGoLimiter:
		return goLimiterWorld(spec)
	case worldThrottled:
		return throttledWorld(spec)
	}
	return nil, fmt.Errorf("name %q: no such world", spec.Name)
}
