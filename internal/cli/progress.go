package cli

import (
	"io"
	"time"
)

// progressEvery is how often progress is told.
const progressEvery = 100 * time.Millisecond

// progress tells on a terminal how far a replay in virtual time is; nil tells nothing.
type progress struct {
	to    io.Writer
	size  func() (columns, rows int)
	style style
	total int64
	now   func() time.Time
	began time.Time
	last  time.Time
	done  int64
	told  bool
}

// progress returns nil where nobody watches.
func (a *app) progress(total int) *progress {
	t := a.terminal()
	if t == nil {
		return nil
	}
	p := newProgress(t.file, total, time.Now)
	p.size, p.style = t.size, t.style
	return p
}

func newProgress(to io.Writer, total int, now func() time.Time) *progress {
	began := now()
	return &progress{
		to: to, total: int64(total), now: now, began: began, last: began,
		size: func() (int, int) { return usualColumns, usualRows },
	}
}

func (p *progress) reserved(*attempt, *verdict) error {
	p.done++
	if p.done%64 != 0 {
		return nil // the clock is slower than a call
	}
	if now := p.now(); now.Sub(p.last) >= progressEvery {
		p.last, p.told = now, true
		p.write("\r" + ansiNoWrap + p.line(now) + ansiEndLine + ansiWrap)
	}
	return nil
}

// line says how far it is, how fast it goes, and when it will be done at that pace.
func (p *progress) line(now time.Time) string {
	took := now.Sub(p.began)
	s := &liveState{
		done: p.done, total: p.total,
		perSecond: newSpeedReport(p.done, took).OperationsPerSecond,
		left:      took / time.Duration(p.done) * time.Duration(p.total-p.done),
	}
	columns, _ := p.size()
	return cut(s.headline(p.style, columns), columns)
}

func (p *progress) completed(*attempt) error { return nil }

// clear takes the line away.
func (p *progress) clear() {
	if p != nil && p.told {
		p.write("\r" + ansiEndLine)
	}
}

func (p *progress) write(text string) {
	_, _ = io.WriteString(p.to, text) // progress that cannot be told is no loss
}
