package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// denialLog is an observer that logs denials, at debug level because they name entities. The entity
// and the resource are those of the first charge; if there are several, all are named besides.
type denialLog struct {
	logger *slog.Logger
}

// Observe logs a denial.
func (d denialLog) Observe(ctx context.Context, e limiter.Event) {
	if !d.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	denied, ok := errors.AsType[*weir.DeniedError](e.Err)
	if !ok {
		return
	}
	first := weir.Subject{}
	if len(denied.Charges) > 0 {
		first = denied.Charges[0]
	}
	attrs := []slog.Attr{
		slog.String("entity", shown(first.Entity, mostName)),
		slog.String("resource", shown(first.Resource, mostName)),
	}
	if len(denied.Charges) > 1 {
		attrs = append(attrs, slog.String("charges", shownList(subjectNames(denied.Charges))))
	}
	d.logger.LogAttrs(ctx, slog.LevelDebug, "denied", append(attrs,
		slog.String("limits", shownList(exceededLimits(denied, first))),
		slog.Duration("retry_after", denied.RetryAfter), slog.Bool("contended", denied.Contended),
		slog.String("lease_id", e.LeaseID.String()))...)
}

// exceededLimits returns the limits that denied: the name of a limit of the first charge, and the
// full name of any other, such as one of a parent.
func exceededLimits(denied *weir.DeniedError, first weir.Subject) []string {
	var names []string
	for i := range denied.Limits {
		l := &denied.Limits[i]
		at := weir.Subject{Entity: l.Entity, Resource: l.Resource}
		switch {
		case !l.Exceeded || l.Shadow:
		case at == first:
			names = append(names, l.Limit)
		default:
			names = append(names, at.FullName(l.Limit))
		}
	}
	return names
}

// supersededLog is an observer that logs that the server refuses reservations because its limits
// are not in force. Its logger limits how often it does so.
type supersededLog struct {
	logger *slog.Logger
}

// Observe logs a refused reservation, without its entity.
func (l supersededLog) Observe(ctx context.Context, e limiter.Event) {
	if errors.Is(e.Err, weir.Superseded) {
		l.logger.LogAttrs(ctx, slog.LevelWarn, "superseded: reservations are refused",
			slog.String("error", e.Err.Error()))
	}
}

// httpErrorWriter logs net/http's errors. Most of them are the fault of clients.
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

// linePause is the least time between two equal lines of the log.
const linePause = time.Minute

// passedLines limits how often a line is logged, by a key of which there must be few.
type passedLines struct {
	mu    sync.Mutex
	byKey map[string]passedLine
}

type passedLine struct {
	at      time.Time
	leftOut int64
}

// allow reports whether to log a line now, and how many lines were left out after the last one that
// was logged.
func (p *passedLines) allow(key string, now time.Time) (leftOut int64, passes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.byKey[key]
	if ok && now.Sub(last.at) < linePause {
		last.leftOut++
		p.byKey[key] = last
		return 0, false
	}
	if p.byKey == nil {
		p.byKey = make(map[string]passedLine)
	}
	p.byKey[key] = passedLine{at: now}
	return last.leftOut, true
}

// throttledHandler is a [slog.Handler] that logs a warning about requests at most once a minute for
// each message and route, with how many were left out, so that callers cannot fill the log. The
// others are logged at debug level.
type throttledHandler struct {
	slog.Handler

	passed *passedLines
}

func throttled(l *slog.Logger) *slog.Logger {
	return slog.New(&throttledHandler{l.Handler(), &passedLines{}})
}

// Handle logs a record, at its own level or at debug level.
func (h *throttledHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	key := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "route" {
			key += " " + a.Value.String()
		}
		return a.Key != "route"
	})
	leftOut, passes := h.passed.allow(key, r.Time)
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

// WithAttrs returns a handler with the same count of lines.
func (h *throttledHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &throttledHandler{h.Handler.WithAttrs(attrs), h.passed}
}

// WithGroup returns a handler with the same count of lines.
func (h *throttledHandler) WithGroup(name string) slog.Handler {
	return &throttledHandler{h.Handler.WithGroup(name), h.passed}
}

// StoreFaults logs and counts errors of a store outside of calls. It is made before the store,
// which must call [StoreFaults.Note]. All methods may be called concurrently.
type StoreFaults struct {
	logger *slog.Logger
	passed passedLines

	mu     sync.Mutex
	total  int64
	latest time.Time
}

// NewStoreFaults returns StoreFaults that log to a logger, or nowhere for nil.
func NewStoreFaults(logger *slog.Logger) *StoreFaults {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &StoreFaults{logger: logger}
}

// Note counts an error, and logs errors at most once a minute, with how many there were.
func (f *StoreFaults) Note(err error) {
	f.mu.Lock()
	f.latest = time.Now()
	f.total++
	total := f.total
	leftOut, passes := f.passed.allow("", f.latest)
	f.mu.Unlock()
	if passes {
		f.logger.LogAttrs(context.Background(), slog.LevelError, "the store failed",
			slog.String("error", strings.TrimPrefix(err.Error(), "weir: ")),
			slog.Int64("times", leftOut+1), slog.Int64("total", total))
	}
}

// count returns how many errors there were. It returns 0 for a nil f.
func (f *StoreFaults) count() float64 {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return float64(f.total)
}

// last returns when the last error was, in Unix seconds, or 0.
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
