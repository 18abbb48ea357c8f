package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// How often a replay is shown: as a picture, and as a line.
const (
	pictureEvery = 250 * time.Millisecond
	lineEvery    = 2 * time.Second
)

// liveOutput shows how a replay goes on.
type liveOutput interface {
	// show shows an instant, and replaces the one before where it can.
	show(s *replay.State)
	// note writes a line that stays.
	note(text string)
	// end leaves nothing behind but notes.
	end()
}

// watchLive shows a replay every so often until stop is called.
func watchLive(v *replay.View, out liveOutput, every time.Duration) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				out.show(v.Take(now))
			case <-over:
				out.end()
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// firsts notes the first call that is admitted and the first that is denied.
type firsts struct {
	out              liveOutput
	admitted, denied bool
}

// Reserved looks whether it is the first of its kind.
func (f *firsts) Reserved(a *replay.Attempt, v *replay.Decision) error {
	switch {
	case v.Admitted() && !f.admitted:
		f.admitted = true
		f.out.note(fmt.Sprintf("first admitted: %s on %s, %s",
			a.Entity, a.Resource, text.FormatMap(a.Costs, text.FormatInt)))
	case v.Denied != nil && !f.denied:
		f.denied = true
		f.out.note(fmt.Sprintf("first denied:   %s on %s, by %s; it would fit in %s",
			a.Entity, a.Resource, strings.Join(exceeded(v.Limits), " and "),
			text.FormatMS(v.Denied.RetryAfter.Milliseconds())))
	}
	return nil
}

// Completed has nothing to look at.
func (f *firsts) Completed(*replay.Attempt) error { return nil }

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
