package server

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// denialLog is an observer that logs denials. Entities are in the logs at debug level only.
type denialLog struct {
	logger *slog.Logger
}

// Observe logs a denial.
func (d denialLog) Observe(ctx context.Context, e weir.Event) {
	if !d.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	denied, ok := errors.AsType[*weir.DeniedError](e.Err)
	if !ok {
		return
	}
	d.logger.LogAttrs(ctx, slog.LevelDebug, "denied", slog.String("lease_id", e.LeaseID.String()),
		slog.Any("reason", denied), slog.Duration("retry_after", denied.RetryAfter))
}

// httpErrors passes on what net/http says of connections. Most of it is the doing of clients.
func httpErrors(logger *slog.Logger) *log.Logger {
	return log.New(httpErrorWriter{logger}, "", 0)
}

type httpErrorWriter struct {
	logger *slog.Logger
}

func (w httpErrorWriter) Write(p []byte) (int, error) {
	level := slog.LevelDebug
	switch {
	case bytes.HasPrefix(p, []byte("http: panic")):
		level = slog.LevelError
	case bytes.HasPrefix(p, []byte("http: Accept error")):
		level = slog.LevelWarn
	}
	w.logger.Log(context.Background(), level, "http server",
		slog.String("said", string(bytes.TrimSpace(p))))
	return len(p), nil
}

// throttle is a [slog.Handler] that passes a warning about requests at most once a minute, so that
// no caller can fill the log: the first at once, and later ones with how many were left out since.
// What is left out is passed at debug level.
type throttle struct {
	slog.Handler

	passed *passedLines
}

// passedLines are the lines that were passed last, by message and route: there are few of either.
type passedLines struct {
	mu     sync.Mutex
	byLine map[string]passedLine
}

type passedLine struct {
	at      time.Time
	leftOut int64
}

func throttled(l *slog.Logger) *slog.Logger {
	return slog.New(&throttle{l.Handler(), &passedLines{byLine: make(map[string]passedLine)}})
}

// Handle passes a record, or its debug form.
func (h *throttle) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	leftOut, passes := h.passed.pass(&r)
	switch {
	case !passes:
		r.Level = slog.LevelDebug
		if !h.Enabled(ctx, r.Level) {
			return nil
		}
	case leftOut > 0:
		r = r.Clone()
		r.AddAttrs(slog.Int64("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// pass reports whether a record is passed as it is, and how many like it were not since the last.
func (p *passedLines) pass(r *slog.Record) (leftOut int64, passes bool) {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "route" {
			line += " " + a.Value.String()
		}
		return a.Key != "route"
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.byLine[line]
	if ok && r.Time.Sub(last.at) < faultPause {
		last.leftOut++
		p.byLine[line] = last
		return 0, false
	}
	p.byLine[line] = passedLine{at: r.Time}
	return last.leftOut, true
}

// WithAttrs keeps the count.
func (h *throttle) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &throttle{h.Handler.WithAttrs(attrs), h.passed}
}

// WithGroup keeps the count.
func (h *throttle) WithGroup(name string) slog.Handler {
	return &throttle{h.Handler.WithGroup(name), h.passed}
}

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
