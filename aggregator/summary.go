package aggregator

import (
	"maps"
	"time"
)

// Summary is what an aggregator has done since it was made.
type Summary struct {
	// Records is the number of records read, and Counted of those that changed usage.
	Records, Counted int64
	// Hours is the number of updates of the usage of an hour, and Totals of days and months.
	Hours, Totals int64
	// Skipped is the number of records that were left out, by reason.
	Skipped map[string]int64
	// Gaps is the number of times that were marked as incomplete.
	Gaps int64
	// Splits is the number of times that the shards of a hot bucket were doubled, Raised of other
	// shards whose count was raised after a doubling, and SplitsFailed of writes for these that
	// failed.
	Splits, Raised, SplitsFailed int64
	// Refills is the number of refills ahead of clients, RefillsLost of those that came too late
	// because the item had changed, and RefillsFailed of those that failed.
	Refills, RefillsLost, RefillsFailed int64
	// Archived is the number of events of the audit that were archived, and Objects of the
	// objects with them. What is written again counts again.
	Archived, Objects int64
	// Until is the time up to which the whole stream was read; zero if that is not known.
	Until time.Time
}

// Clone returns a copy of a summary.
func (s *Summary) Clone() *Summary {
	c := *s
	c.Skipped = maps.Clone(s.Skipped)
	return &c
}
