package server

import (
	"context"
	"time"

	"github.com/weir-limiter/weir/driver"
)

// counting is a store with counts for its operator.
type counting interface {
	// Counts yields counts that only grow, by name in snake_case, with their help.
	Counts(yield func(name, help string, read func() int64) bool)
}

// watchBackend registers the store's own counts, the offset of its clock, and its snapshots. The
// store was opened at opened.
func (m *metrics) watchBackend(b driver.Store, opened time.Time) {
	if c, ok := b.(counting); ok {
		c.Counts(func(name, help string, read func() int64) bool {
			m.counter("weir_store_"+name+"_total", help, func() float64 { return float64(read()) })
			return true
		})
	}
	if c, ok := b.(driver.ClockCorrector); ok {
		m.gauge("weir_store_clock_offset_seconds",
			"Seconds added to this process's clock so that it agrees with the store's; 0 if the difference is small.",
			func() float64 { return c.ClockOffset().Seconds() })
	}
	if s, ok := b.(driver.Snapshotter); ok {
		m.watchSnapshots(s, opened)
	}
}

// watchSnapshots registers how the file of a store keeps up with its state. When the store was
// opened, the file had everything.
func (m *metrics) watchSnapshots(s driver.Snapshotter, opened time.Time) {
	m.gauge("weir_snapshot_last_success_timestamp_seconds",
		"When a snapshot was last written, or was not needed because nothing had changed.",
		func() float64 {
			at := s.SnapshotStats().Complete
			if at.Before(opened) {
				at = opened
			}
			return float64(at.UnixMilli()) / 1000
		})
	m.gauge("weir_snapshot_interval_seconds", "The time between snapshots while the state changes.",
		func() float64 { return s.SnapshotStats().Interval.Seconds() })
	m.counter("weir_snapshot_failures_total", "Snapshots that could not be written.",
		func() float64 { return float64(s.SnapshotStats().Failures) })
}

// scrapeReadyWithin bounds the store's answer to a scrape. It is shorter than Prometheus's own
// default of ten seconds, after which it takes the whole server for down.
const scrapeReadyWithin = 5 * time.Second

// watchReady registers what /readyz says. ready returns nil if the server can reserve.
func (m *metrics) watchReady(ready func(context.Context) error) {
	m.gauge("weir_ready", "1 if the server can reserve and /readyz is 200; 0 if not.",
		func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), scrapeReadyWithin)
			defer cancel()
			if ready(ctx) != nil {
				return 0
			}
			return 1
		})
}

// watchStore registers errors of the store outside of calls.
func (m *metrics) watchStore(f *StoreFaults) {
	m.counter("weir_store_errors_total",
		"Failures of the store outside of calls, such as a snapshot that could not be written.", f.count)
	m.gauge("weir_store_last_error_timestamp_seconds",
		"When the store last failed outside of a call; 0 if it never did.", f.last)
}
