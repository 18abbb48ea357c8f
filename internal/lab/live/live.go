// Package live shows the progress of a replay: as a table on a terminal that is redrawn, or as
// lines.
package live

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// How often progress is shown: as a table, and as a line.
const (
	pictureEvery = 250 * time.Millisecond
	lineEvery    = 2 * time.Second
)

// Output shows the progress of a replay.
type Output interface {
	// show shows a state. On a terminal it replaces the one before.
	show(s *replay.State)
	// note writes a line that stays.
	note(text string)
	// end removes everything but the notes.
	end()
}

// Watch shows a replay at intervals until stop is called.
func Watch(v *replay.View, out Output, every time.Duration) (stop func()) {
	return console.Every(every, func(now time.Time) { out.show(v.Take(now)) }, out.end)
}

// FirstCalls is a watcher that notes the first admitted and the first denied call.
type FirstCalls struct {
	Out              Output
	admitted, denied bool
}

// Reserved notes a decision if it is the first of its kind.
func (f *FirstCalls) Reserved(a *replay.Attempt, v *replay.Decision) error {
	switch {
	case v.Admitted() && !f.admitted:
		f.admitted = true
		f.Out.note(fmt.Sprintf("first admitted: %s on %s, %s",
			a.Entity, a.Resource, text.FormatMap(a.Costs, text.FormatInt)))
	case v.Denied != nil && !f.denied:
		f.denied = true
		f.Out.note(fmt.Sprintf("first denied:   %s on %s, by %s; it would be admitted in %s",
			a.Entity, a.Resource, strings.Join(exceeded(v.Limits), " and "),
			text.FormatMS(v.Denied.RetryAfter.Milliseconds())))
	}
	return nil
}

// exceeded names the limits that denied a call.
func exceeded(limits []weir.LimitStatus) []string {
	var by []string
	for i := range limits {
		if s := &limits[i]; s.Exceeded && !s.Shadow {
			by = append(by, text.Printable(fmt.Sprintf("%s of %s", s.Limit, s.Entity)))
		}
	}
	return by
}

// Lines shows a replay without a terminal, as lines.
type Lines struct {
	mu sync.Mutex
	To io.Writer
}

func (l *Lines) show(s *replay.State) {
	line := fmt.Sprintf("%3d %%  %s of %s calls: %s admitted, %s denied", percentDone(s),
		text.FormatInt(s.Done), text.FormatInt(s.Total), text.FormatInt(s.Admitted), text.FormatInt(s.Denied))
	if by := deniers(s, 3); len(by) > 0 {
		line += " (" + strings.Join(by, ", ") + ")"
	}
	if s.Errors > 0 {
		line += ", " + text.Plural(int(s.Errors), "error", "errors")
	}
	l.note(line)
}

func (l *Lines) note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.To, text.Printable(line)+"\n") // the report is printed in any case
}

func (l *Lines) end() {}

// deniers names the limits that denied the most calls.
func deniers(s *replay.State, most int) []string {
	rows := slices.DeleteFunc(slices.Clone(s.Rows), func(r replay.StateRow) bool {
		return r.Denied == 0 || r.Shadow
	})
	slices.SortStableFunc(rows, func(a, b replay.StateRow) int { return int(b.Denied - a.Denied) })
	var by []string
	for _, r := range rows[:min(len(rows), most)] {
		by = append(by, fmt.Sprintf("%s %s %s", replay.RowEntity(r.LimitReport), r.Limit, text.FormatInt(r.Denied)))
	}
	return by
}

// NewOutput returns the terminal and its interval if there is a terminal, or else lines, which may
// be nil.
func NewOutput(a *console.App, plain *Lines) (Output, time.Duration) {
	if t := a.Terminal(); t != nil {
		return newScreen(t), pictureEvery
	}
	if plain != nil {
		return plain, lineEvery
	}
	return nil, 0
}
