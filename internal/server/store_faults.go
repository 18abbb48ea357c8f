package server

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// faultPause is the least time between two lines of the log about a store that goes on failing.
const faultPause = time.Minute

// StoreFaults logs and counts what goes wrong in a store outside of calls. It is made before the
// store, which is told to call [StoreFaults.Note]. All methods may be called at once.
type StoreFaults struct {
	logger *slog.Logger

	mu sync.Mutex
	// total counts all of them, untold those that are in no line yet.
	total, untold int64
	told, latest  time.Time
}

// NewStoreFaults logs to a logger; nil is nobody.
func NewStoreFaults(logger *slog.Logger) *StoreFaults {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &StoreFaults{logger: logger}
}

// Note counts an error. The first one is logged at once, others at most once a minute, with how many
// there were since.
func (f *StoreFaults) Note(err error) {
	f.mu.Lock()
	f.latest = time.Now()
	f.total++
	f.untold++
	times, total := f.untold, f.total
	tell := f.told.IsZero() || f.latest.Sub(f.told) >= faultPause
	if tell {
		f.told, f.untold = f.latest, 0
	}
	f.mu.Unlock()
	if tell {
		f.logger.LogAttrs(context.Background(), slog.LevelError, "the store failed",
			slog.String("error", strings.TrimPrefix(err.Error(), "weir: ")),
			slog.Int64("times", times), slog.Int64("total", total))
	}
}

// count is how many there were. A nil f has none.
func (f *StoreFaults) count() float64 {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return float64(f.total)
}

// last is when the last one was, in Unix seconds; 0 for never.
func (f *StoreFaults) last() float64 {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest.IsZero() {
		return 0
	}
	return float64(f.latest.UnixMilli()) / 1000
}
