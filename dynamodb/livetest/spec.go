package livetest

// Limit is a bucket as both sides are told of it.
type Limit struct {
	Capacity int64 `json:"capacity"` // units
	Refill   int64 `json:"refill"`   // units per period
	PeriodS  int64 `json:"period_s"` // seconds
}

// Action is something that one process does once, besides its calls.
type Action struct {
	// AtMS is when, in milliseconds after the start.
	AtMS int64 `json:"at_ms"`
	// Do is "limits", which replaces an entity's limits, or "double", which doubles the shards of
	// its bucket; only Python does the latter.
	Do     string `json:"do"`
	Entity string `json:"entity"`
	// Limits are the new ones.
	Limits map[string]Limit `json:"limits,omitempty"`
	// Shards is how many there are before.
	Shards int `json:"shards"`
}

// The ways in which a call ends once it was admitted.
const (
	Keep   = "complete" // as reserved, at once
	Up     = "up"       // as more than was reserved
	Down   = "down"     // as less
	Cancel = "cancel"   // as nothing
)

// Spec is what one process offers. It is handed over as JSON.
type Spec struct {
	Endpoint  string `json:"endpoint"`
	Table     string `json:"table"`
	Namespace string `json:"namespace"`
	// NamespaceID is what the items' keys begin with.
	NamespaceID string `json:"namespace_id"`
	// Process is the name in the log: the side, '-', a number.
	Process string `json:"process"`
	// Log is the file that is written.
	Log string `json:"log"`
	// Entities are who calls, drawn at random for each call; Resource is what they call.
	Entities []string `json:"entities"`
	Resource string   `json:"resource"`
	// Costs are the units that a call may ask of each limit, one drawn at random.
	Costs map[string][]int64 `json:"costs"`
	// Rate is how many calls a second are offered, whatever becomes of the ones before, for
	// Seconds.
	Rate    int `json:"rate"`
	Seconds int `json:"seconds"`
	// Inflight is how many calls may be under way; one that would be more is dropped, and
	// counted.
	Inflight int `json:"inflight"`
	// Mix is how often calls end in each way, by weight.
	Mix map[string]int `json:"mix"`
	// HoldMS is the least and the most that a call takes until it ends, in milliseconds.
	HoldMS [2]int `json:"hold_ms"`
	// AdjustPercent is by how much of a cost [Up] and [Down] differ from it.
	AdjustPercent int64 `json:"adjust_percent"`
	// Seed is what the draws begin with.
	Seed    uint64   `json:"seed"`
	Actions []Action `json:"actions,omitempty"`
}
