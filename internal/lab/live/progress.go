package live

import (
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// Progress tells on a terminal how far a replay in virtual time is. It is a watcher.
type Progress struct {
	line  *console.ProgressLine
	began time.Time
	// asked counts attempts, and done the calls of the total that have no attempt left to make.
	asked, done, total int64
}

// NewProgress shows on a line how far a replay of total calls is.
func NewProgress(line *console.ProgressLine, total int) *Progress {
	line.Last = line.Now()
	return &Progress{line: line, began: line.Last, total: int64(total)}
}

// Reserved counts a call when it is known what becomes of it: all of them may have come, and yet be
// far from admitted.
func (p *Progress) Reserved(_ *replay.Attempt, v *replay.Decision) error {
	p.asked++
	if !v.Retries {
		p.done++
	}
	if p.asked%64 == 0 { // the clock is slower than a call
		p.line.Update(p.headline)
	}
	return nil
}

// headline says how far it is, how fast it goes, and when it will be done at that pace.
func (p *Progress) headline(columns int) string {
	took := p.line.Last.Sub(p.began)
	return headline(p.line.Style, &replay.State{
		Done: p.done, Total: p.total,
		PerSecond: replay.NewSpeed(p.done, took).OperationsPerSecond,
		Left:      took / time.Duration(max(p.done, 1)) * time.Duration(p.total-p.done),
	}, columns)
}
