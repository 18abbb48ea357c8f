package live

import (
	"io"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// Progress tells on a terminal how far a replay in virtual time is; nil tells nothing.
type Progress struct {
	to    io.Writer
	size  func() (columns, rows int)
	style console.Style
	total int64
	now   func() time.Time
	began time.Time
	last  time.Time
	// asked counts attempts, and done the calls that have no attempt left to make.
	asked, done int64
	told        bool
}

// StartProgress returns nil where nobody watches.
func StartProgress(a *console.App, total int) *Progress {
	t := a.Terminal()
	if t == nil {
		return nil
	}
	p := newProgress(t.File, total, time.Now)
	p.size, p.style = t.Size, t.Style
	return p
}

func newProgress(to io.Writer, total int, now func() time.Time) *Progress {
	began := now()
	return &Progress{
		to: to, total: int64(total), now: now, began: began, last: began,
		size: func() (int, int) { return console.UsualColumns, console.UsualRows },
	}
}

// Reserved counts a call when it is known what becomes of it: all of them may have come, and yet be
// far from admitted.
func (p *Progress) Reserved(_ *replay.Attempt, v *replay.Decision) error {
	p.asked++
	if !v.Retries {
		p.done++
	}
	if p.asked%64 != 0 {
		return nil // the clock is slower than a call
	}
	if now := p.now(); now.Sub(p.last) >= console.ProgressEvery {
		p.last, p.told = now, true
		p.write("\r" + console.AnsiNoWrap + p.line(now) + console.AnsiEndLine + console.AnsiWrap)
	}
	return nil
}

// line says how far it is, how fast it goes, and when it will be done at that pace.
func (p *Progress) line(now time.Time) string {
	took := now.Sub(p.began)
	s := &replay.State{
		Done: p.done, Total: p.total,
		PerSecond: replay.NewSpeed(p.done, took).OperationsPerSecond,
		Left:      took / time.Duration(max(p.done, 1)) * time.Duration(p.total-p.done),
	}
	columns, _ := p.size()
	return text.Cut(headline(p.style, s, columns), columns)
}

// Completed has nothing to count.
func (p *Progress) Completed(*replay.Attempt) error { return nil }

// Clear takes the line away.
func (p *Progress) Clear() {
	if p != nil && p.told {
		p.write("\r" + console.AnsiEndLine)
	}
}

func (p *Progress) write(text string) {
	_, _ = io.WriteString(p.to, text) // progress that cannot be told is no loss
}
