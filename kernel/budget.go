package kernel

import (
	"math"
	"slices"
)

// Budget counts a budget limit. See the package documentation.
type Budget struct {
	// Capacity is the ceiling in each period, in units.
	Capacity int64
	// Calendar is the one for units that are taken from now on.
	Calendar Calendar
	// SeenMS is the latest instant that the counter has seen.
	SeenMS int64
	// Periods are the periods in which something was used and that had not ended at SeenMS. There
	// is one unless the calendar was changed.
	Periods []Period

	// start and end are those of the current period, kept because computing them is slow.
	start, end int64
}

// NewBudget returns a budget of which nothing is used.
func NewBudget(now int64, d Definition) *Budget {
	return &Budget{Capacity: d.Capacity, Calendar: d.Calendar, SeenMS: now}
}

// Redefine implements [Counter]. The use of a period of the old calendar counts until that period
// ends.
func (b *Budget) Redefine(_ int64, d Definition) {
	b.Capacity = d.Capacity
	if b.Calendar != d.Calendar {
		b.Calendar, b.start, b.end = d.Calendar, 0, 0
	}
}

// Period is the use of a budget from StartMS up to but not including EndMS.
type Period struct{ StartMS, EndMS, Used int64 }

// Used returns the units used in the periods that have not ended at now, at most MaxInt64.
func (b *Budget) Used(now int64) int64 {
	now = max(now, b.SeenMS)
	var sum uint64
	for i := range b.Periods {
		if b.Periods[i].EndMS > now {
			sum = min(sum+uint64(b.Periods[i].Used), math.MaxInt64)
		}
	}
	return int64(sum)
}

// touch moves the budget to now and drops the periods that have ended.
func (b *Budget) touch(now int64) {
	b.SeenMS = max(b.SeenMS, now)
	for i := range b.Periods {
		if b.Periods[i].EndMS <= b.SeenMS {
			b.Periods = slices.DeleteFunc(b.Periods, func(p Period) bool { return p.EndMS <= b.SeenMS })
			return
		}
	}
}

// Available implements [Counter].
func (b *Budget) Available(now int64) int64 {
	if b.Idle(now, ForgetMS) {
		return b.Capacity
	}
	b.touch(now)
	return b.Capacity - b.Used(now)
}

// AvailableAt implements [Counter].
func (b *Budget) AvailableAt(now int64, d Definition) int64 { return d.Capacity - b.Used(now) }

// FitsAt implements [Counter]. It returns the end of the current period or, after a change of the
// calendar, of a later one.
func (b *Budget) FitsAt(now, n int64) int64 {
	at := max(now, b.SeenMS)
	for b.Capacity-b.Used(at) < n {
		next := int64(math.MaxInt64)
		for i := range b.Periods {
			if end := b.Periods[i].EndMS; end > at {
				next = min(next, end)
			}
		}
		if next == math.MaxInt64 {
			return next
		}
		at = next
	}
	return at
}

// CanCount implements [Counter]. A change in a period that has ended is not counted, so it always
// fits.
func (b *Budget) CanCount(now int64, c Change) bool {
	now = max(now, b.SeenMS)
	if len(c.Pieces) > 0 && c.Pieces[0].Until <= now {
		return true
	}
	return c.To-c.From <= math.MaxInt64-b.Used(now)
}

// Take implements [Counter]. It returns a piece even for no units, because later adjusts of the
// lease count in this period.
func (b *Budget) Take(now, n int64) (Piece, bool) {
	b.touch(now)
	if b.SeenMS < b.start || b.SeenMS >= b.end {
		b.start, b.end = b.Calendar.PeriodMS(b.SeenMS)
	}
	b.add(b.start, b.end, n)
	return Piece{Units: n, Until: b.end, Mark: b.start}, true
}

func (b *Budget) add(start, end, n int64) {
	for i := range b.Periods {
		if p := &b.Periods[i]; p.StartMS == start && p.EndMS == end {
			p.Used = max(p.Used+n, 0)
			return
		}
	}
	if n > 0 {
		b.Periods = append(b.Periods, Period{start, end, n})
	}
}

// Apply implements [Counter]. It counts in the period of the reservation, or not at all if that has
// ended.
func (b *Budget) Apply(now int64, c Change) []Piece {
	b.touch(now)
	if len(c.Pieces) == 0 {
		return nil
	}
	p := c.Pieces[0]
	if p.Until > b.SeenMS {
		b.add(p.Mark, p.Until, c.To-c.From)
	}
	if c.Ends {
		return nil
	}
	p.Units = c.To
	return []Piece{p}
}

// InUse implements [Counter].
func (b *Budget) InUse(now int64) bool { return b.Used(now) > 0 }

// Idle implements [Counter].
func (b *Budget) Idle(now, forMS int64) bool {
	return now-b.SeenMS >= forMS && b.Used(now-forMS) == 0
}

// Clone implements [Counter].
func (b *Budget) Clone() Counter {
	out := *b
	out.Periods = slices.Clone(b.Periods)
	return &out
}
