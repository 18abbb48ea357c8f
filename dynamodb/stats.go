package dynamodb

import (
	"time"
)

// Stats are what a store has counted since it was opened.
type Stats struct {
	// Contended counts reservations that were denied since other writers were quicker, four times.
	Contended int64
	// Ambiguous counts amounts of which nobody knows whether a write that was not answered has charged
	// them, or given them back; AmbiguousMilli is how much they come to, in milli-units. So much may
	// be over-charged at most; nothing is ever given back twice.
	Ambiguous, AmbiguousMilli int64
	// Doublings counts how often this process doubled the shards of a bucket.
	Doublings int64
	// Probes counts the reads by which [Store.Ready] asked the table.
	Probes int64
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	return Stats{
		Contended: s.buckets.Counts.Contended.Load(), Ambiguous: s.buckets.Counts.AmbiguousCalls.Load(),
		AmbiguousMilli: s.buckets.Counts.AmbiguousMilli.Load(), Doublings: s.buckets.Counts.Doublings.Load(),
		Probes: s.buckets.Counts.Probes.Load(),
	}
}

// Counts yields the counts of [Stats] by the names that metrics have, in units where they are
// amounts.
func (s *Store) Counts(yield func(name, help string, read func() int64) bool) {
	for _, c := range []struct {
		name, help string
		read       func() int64
	}{
		{"contended", "Reservations denied since other writers were quicker.", s.buckets.Counts.Contended.Load},
		{"ambiguous", "Amounts of which nobody knows whether a write without an answer charged them or gave them back.",
			s.buckets.Counts.AmbiguousCalls.Load},
		{"ambiguous_units", "What these amounts come to; so much may be over-charged at most.",
			func() int64 { return s.buckets.Counts.AmbiguousMilli.Load() / 1000 }},
		{"doublings", "Times that the shards of a bucket were doubled.", s.buckets.Counts.Doublings.Load},
		{"probes", "Reads that asked the table whether it can be used.", s.buckets.Counts.Probes.Load},
	} {
		if !yield(c.name, c.help, c.read) {
			return
		}
	}
}

// ClockOffset returns what must be added to the process's clock to have the table's, as far as the
// answers so far tell: 0 within two seconds. It never waits.
func (s *Store) ClockOffset() time.Duration { return s.client.Clock.Offset() }
