package aggregator

import (
	"time"

	"github.com/weir-limiter/weir/internal/schema"
)

// Retention is the time for which a stream keeps a record at least.
const Retention = 24 * time.Hour

// Situation is what is known when a reader begins with a table's stream.
type Situation struct {
	Now time.Time
	// Label identifies the stream, and Began is when it was turned on.
	Label string
	Began time.Time
	// TableCreated is when the table was created.
	TableCreated time.Time
	// State is the state of the last aggregator; nil if there was none.
	State *schema.Aggregator
	// Checkpoints are all checkpoints on the table.
	Checkpoints []*schema.Checkpoint
}

// Lost returns the time whose records cannot be read any more; nil if there is none. Records count
// as lost as soon as they are older than the stream's [Retention], whether or not it still has
// them.
func Lost(s *Situation) *schema.Gap {
	available := s.Now.Add(-Retention)
	reason := "the aggregator did not read the stream for longer than its 24 hours"
	from := ReadUntil(s.State, s.Checkpoints)
	switch {
	case s.State == nil:
		available = later(available, s.Began)
		if available.Sub(s.TableCreated) <= newTable {
			return nil // the stream is as old as the table
		}
		from, reason = time.Time{}, "usage was not counted before the aggregator began"
	case s.State.Label != s.Label:
		reason = "the stream was turned off, and on again"
		available = later(available, s.Began)
	}
	if !from.Before(available) {
		return nil
	}
	return &schema.Gap{From: from, To: available, Reason: reason, MarkedAt: s.Now}
}

// newTable is the time within which a new table gets its stream.
const newTable = time.Minute

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// ReadUntil returns the instant up to which a stream was read: the earliest of the shards that were
// not read to their end. It is zero if it was never read.
func ReadUntil(state *schema.Aggregator, checkpoints []*schema.Checkpoint) time.Time {
	if state == nil {
		return time.Time{}
	}
	var open, done time.Time
	for _, c := range checkpoints {
		switch {
		case c.Label != state.Label:
		case c.Done:
			done = later(done, c.Until)
		case open.IsZero() || c.Until.Before(open):
			open = c.Until
		}
	}
	if open.IsZero() {
		open = done
	}
	// The state is written when a reader stops and all shards are read. Nothing before Since counts.
	return later(open, later(state.Until, state.Since))
}

// Foreign reports whether a record is the write of a usage item by another aggregator: its sums
// changed, and no position did. Such a program counts what weir counts too.
func Foreign(r *Record) bool {
	if r.Kind == Removed || r.New == nil {
		return false
	}
	_, windowKey, err := schema.ParseUsageSK(r.Key.SK)
	if err != nil {
		return false
	}
	start, err := schema.ParseTimestamp(windowKey)
	if err != nil || schema.Timestamp(start) != windowKey {
		return false // the days and months of weir have their date only
	}
	for name := range r.New {
		if schema.IsPosition(name) &&
			schema.StringAttribute(r.New, name) != schema.StringAttribute(r.Old, name) {
			return false
		}
	}
	before, _ := schema.Int64(r.Old[schema.AttrTotalEvents]) // 0 if there was no item
	after, err := schema.Int64(r.New[schema.AttrTotalEvents])
	return err == nil && after != before
}
