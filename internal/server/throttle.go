package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

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
