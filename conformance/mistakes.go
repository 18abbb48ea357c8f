package conformance

// Mistake is a defect of a predecessor or of another limiter that weir must not have.
type Mistake struct {
	// Name is part of the name of every case that guards against the mistake.
	Name string
	// Elsewhere says which other tests guard against a mistake that no case here can show; it is
	// empty if a case does.
	Elsewhere string
}

// Mistakes returns the mistakes that have cost users of other limiters dearly.
func Mistakes() []Mistake {
	const shards = "only a store that divides a limit into shards can make it; its own tests guard it"
	return []Mistake{
		{Name: "S1: starvation"},
		{Name: "S2: refill dropped"},
		{Name: "U1: usage"},
		{Name: "U2: usage"},
		{Name: "W1", Elsewhere: shards},
		{Name: "W2", Elsewhere: shards},
		{Name: "W3", Elsewhere: shards},
		{Name: "W4", Elsewhere: shards},
		{Name: "W5", Elsewhere: shards},
		{Name: "C1: clock skew"},
		{Name: "L1: changed limits"},
		{Name: "L2: changed limits"},
		{Name: "N1: names with - or ."},
		{Name: "V1: negative costs"},
		{Name: "O1: brought limits ignored"},
		{Name: "O2: default changes"},
		{Name: "R1: balance above capacity"},
		{Name: "E1: leftovers"},
		{Name: "P1: leftovers"},
		{Name: "X1: "},
		{Name: "H1: errors around on_unavailable"},
		{Name: "replay of a multi-limit reserve"},
		{Name: "expired lease re-reserved"},
		{Name: "capacity set back and forth"},
		{Name: "a failed complete swallowed"},
		{Name: "64-bit overflow"},
		{Name: "amount ignored by concurrency"},
		{Name: "overrun not counted"},
		{Name: "errors that look like denials"},
		{Name: "concurrent requests that together pass a limit"},
		{Name: "leaked slots"},
		{Name: "denied by one limit but charged by another"},
		{Name: "over-reservation blocking traffic"},
		{Name: "aborted streams losing usage"},
		{Name: "double refunds"},
		{Name: "silent per-process counters"},
	}
}
