package memory

import (
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// budget counts a budget limit. There is one period but where the calendar was changed: what was
// used in the old period then counts until that one ends.
type budget struct {
	seen    int64
	periods []period
	current calendar
}

// period is what was used from start up to but not including end.
type period struct{ start, end, used int64 }

// calendar remembers the bounds of the current period: finding them is slow.
type calendar struct {
	every, zone string
	start, end  int64
}

// at returns the period that holds an instant.
func (c *calendar) at(now int64, l *weir.Limit) (start, end int64) {
	if now < c.start || now >= c.end || c.every != l.Every || c.zone != l.Zone {
		from, to := l.Period(time.UnixMilli(now))
		*c = calendar{l.Every, l.Zone, from.UnixMilli(), to.UnixMilli()}
	}
	return c.start, c.end
}

// used returns the units used in periods that have not ended.
func (b *budget) used(now int64) int64 {
	var sum int64
	for i := range b.periods {
		if b.periods[i].end > now {
			sum += b.periods[i].used
		}
	}
	return sum
}

func (b *budget) available(now int64, l *weir.Limit) int64 {
	if b.idle(now, forgetMS) {
		return l.Capacity
	}
	b.touch(now)
	return l.Capacity - b.used(b.seen)
}

// touch brings the budget to now and drops what has ended.
func (b *budget) touch(now int64) {
	b.seen = max(b.seen, now)
	for i := range b.periods {
		if b.periods[i].end <= b.seen {
			b.periods = slices.DeleteFunc(b.periods, func(p period) bool { return p.end <= b.seen })
			return
		}
	}
}

func (b *budget) peek(now int64, l *weir.Limit) int64 {
	return l.Capacity - b.used(max(now, b.seen))
}

// freeAt is the start of the next period. After a change of calendar it may take the end of more
// than one.
func (b *budget) freeAt(now, want int64, l *weir.Limit) int64 {
	at := max(now, b.seen)
	for l.Capacity-b.used(at) < want {
		next := int64(math.MaxInt64)
		for _, p := range b.periods {
			if p.end > at {
				next = min(next, p.end)
			}
		}
		at = next
	}
	return at
}

func (b *budget) counts(now int64, c claim) bool {
	now = max(now, b.seen)
	if len(c.pieces) > 0 && c.pieces[0].Until <= now {
		return true // in a period that has ended nothing is counted
	}
	return c.to-c.from <= math.MaxInt64-b.used(now)
}

// take returns a piece also for no units: whatever is adjusted later belongs to this period.
func (b *budget) take(now, n int64, l *weir.Limit) (weir.Piece, bool) {
	b.touch(now)
	start, end := b.current.at(b.seen, l)
	b.add(start, end, n)
	return weir.Piece{Units: n, Until: end, Mark: start}, true
}

func (b *budget) add(start, end, n int64) {
	for i := range b.periods {
		if p := &b.periods[i]; p.start == start && p.end == end {
			p.used = max(p.used+n, 0)
			return
		}
	}
	if n > 0 {
		b.periods = append(b.periods, period{start, end, n})
	}
}

// settle books into the period of the reservation. Once that has ended nobody can see it.
func (b *budget) settle(now int64, c claim) []weir.Piece {
	b.touch(now)
	if len(c.pieces) == 0 {
		return nil
	}
	p := c.pieces[0]
	if p.Until > b.seen {
		b.add(p.Mark, p.Until, c.to-c.from)
	}
	if !c.lives {
		return nil
	}
	p.Units = c.to
	return []weir.Piece{p}
}

func (b *budget) inUse(now int64) bool { return b.used(max(now, b.seen)) > 0 }

func (b *budget) idle(now, forMS int64) bool {
	return now-b.seen >= forMS && b.used(now-forMS) == 0
}
