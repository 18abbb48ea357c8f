package livetest

// Limit is the definition of a bucket for both sides.
type Limit struct {
	Capacity int64 `json:"capacity"` // units
	Refill   int64 `json:"refill"`   // units per period
	PeriodS  int64 `json:"period_s"` // seconds
}

// Action is something that one process does once, besides its calls.
type Action struct {
	// AtMS is the time of the action, in milliseconds after the start.
	AtMS int64 `json:"at_ms"`
	// Do is "limits", which replaces an entity's limits, or "double", which doubles the shards of
	// its bucket. Only Python does the latter.
	Do     string `json:"do"`
	Entity string `json:"entity"`
	// Limits are the new limits.
	Limits map[string]Limit `json:"limits,omitempty"`
	// Shards is the shard count before.
	Shards int `json:"shards"`
}

// The ways in which an admitted call ends.
const (
	Keep   = "complete" // as reserved, at once
	Up     = "up"       // with more than was reserved
	Down   = "down"     // with less
	Cancel = "cancel"   // with nothing
)

// Spec is the work of one process, which gets it as JSON.
type Spec struct {
	Endpoint  string `json:"endpoint"`
	Table     string `json:"table"`
	Namespace string `json:"namespace"`
	// NamespaceID is the beginning of the items' keys.
	NamespaceID string `json:"namespace_id"`
	// Process is the name in the log: the side, '-', a number.
	Process string `json:"process"`
	// Log is the file to write.
	Log string `json:"log"`
	// Entities are the entities of the calls, one drawn at random for each; Resource is their
	// resource.
	Entities []string `json:"entities"`
	Resource string   `json:"resource"`
	// Costs are the possible costs of a call on each limit, one drawn at random.
	Costs map[string][]int64 `json:"costs"`
	// Rate is the number of calls started per second, whether or not the earlier ones have ended,
	// for Seconds.
	Rate    int `json:"rate"`
	Seconds int `json:"seconds"`
	// Inflight is the largest number of calls in flight. A call above it is dropped and counted.
	Inflight int `json:"inflight"`
	// Mix are the weights of the ways in which calls end.
	Mix map[string]int `json:"mix"`
	// HoldMS are the shortest and the longest duration of a call, in milliseconds.
	HoldMS [2]int `json:"hold_ms"`
	// AdjustPercent is the difference of [Up] and [Down] to the cost, in per cent.
	AdjustPercent int64 `json:"adjust_percent"`
	// Seed is the seed of the random draws.
	Seed    uint64   `json:"seed"`
	Actions []Action `json:"actions,omitempty"`
}
