package cli

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progressEvery is how often progress is told.
const progressEvery = 100 * time.Millisecond

// progress tells on a terminal how far a replay is; nil tells nothing.
type progress struct {
	to    io.Writer
	total int
	now   func() time.Time
	last  time.Time
	done  int
	told  bool
}

// progress returns nil where nobody watches: the errors do not go to a terminal, or it is a dumb
// one.
func (a *app) progress(total int) *progress {
	f, ok := a.streams.Err.(*os.File)
	if !ok || a.env("TERM") == "dumb" {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return newProgress(f, total, time.Now)
}

func newProgress(to io.Writer, total int, now func() time.Time) *progress {
	return &progress{to: to, total: total, now: now, last: now()}
}

func (p *progress) reserved(*attempt, *verdict) error {
	p.done++
	if p.done%64 != 0 {
		return nil // the clock is slower than a call
	}
	if now := p.now(); now.Sub(p.last) >= progressEvery {
		p.last, p.told = now, true
		p.write(fmt.Sprintf("\r%s of %s calls", thousands(int64(p.done)), thousands(int64(p.total))))
	}
	return nil
}

func (p *progress) completed(*attempt) error { return nil }

// clear takes the line away.
func (p *progress) clear() {
	if p != nil && p.told {
		p.write("\r\x1b[K")
	}
}

func (p *progress) write(text string) {
	_, _ = io.WriteString(p.to, text) // progress that cannot be told is no loss
}
