package live

import (
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// Progress is a watcher that shows the progress of a replay in virtual time on a terminal.
type Progress struct {
	line  *console.ProgressLine
	began time.Time
	// asked counts attempts, and done the calls that make no further attempt.
	asked, done, total int64
}

// NewProgress shows the progress of a replay of total calls.
func NewProgress(line *console.ProgressLine, total int) *Progress {
	line.Last = line.Now()
	return &Progress{line: line, began: line.Last, total: int64(total)}
}

// Reserved counts a call after its last attempt, because all calls may have arrived long before.
func (p *Progress) Reserved(_ *replay.Attempt, v *replay.Decision) error {
	p.asked++
	if !v.Retries {
		p.done++
	}
	if p.asked%64 == 0 { // reading the clock takes longer than a call
		p.line.Update(p.headline)
	}
	return nil
}

// headline returns the part that is done, the speed, and the time that is left.
func (p *Progress) headline(columns int) string {
	took := p.line.Last.Sub(p.began)
	return headline(p.line.Style, &replay.State{
		Done: p.done, Total: p.total,
		PerSecond: replay.NewSpeed(p.done, took).OperationsPerSecond,
		Left:      took / time.Duration(max(p.done, 1)) * time.Duration(p.total-p.done),
	}, columns)
}
