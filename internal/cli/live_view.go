package cli

import (
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
)

// rateOver is the time over which calls a second are averaged.
const rateOver = 2 * time.Second

// liveView looks at a replay that runs.
type liveView struct {
	player *player
	tally  *tally
	total  int64

	rows   []*limitRow
	known  int // limits in rows
	denied []int64
	past   []sample
}

// sample is how many calls had been answered, with a denial or an error too, at an instant.
type sample struct {
	at   time.Time
	done int64
}

// liveState is what there was to see at an instant.
type liveState struct {
	done, total     int64
	perSecond, late int64
	admitted        int64
	denied, errors  int64
	left            time.Duration // until the last call is sent, as planned
	rows            []liveRow
}

// liveRow is one row of the table: how much of a limit is in use, of how much.
type liveRow struct {
	entity, limit    string
	kind             weir.Kind
	shadow           bool
	admitted, denied int64
	used, capacity   *big.Int
	// denies is true where the limit has denied something since the look before.
	denies bool
}

func newLiveView(p *player, t *tally) *liveView {
	return &liveView{player: p, tally: t, total: int64(len(p.workload.calls))}
}

// take looks at the replay.
func (v *liveView) take(now time.Time) *liveState {
	v.player.mu.Lock()
	defer v.player.mu.Unlock()
	totals := &v.tally.totals
	s := &liveState{
		done: totals.calls, total: v.total, late: v.player.count.late, admitted: totals.admitted,
		denied: totals.denied, errors: totals.faults,
		left: max(v.player.start.Add(v.player.lasts()).Sub(now), 0),
	}
	s.perSecond = v.rate(sample{now, s.done})
	if v.known != len(v.tally.order) {
		v.rows, v.known = limitRows(v.tally), len(v.tally.order)
		v.denied = append(v.denied, make([]int64, max(len(v.rows)-len(v.denied), 0))...)
	}
	for i, r := range v.rows {
		row := r.state()
		row.denies = row.denied > v.denied[i]
		v.denied[i] = row.denied
		s.rows = append(s.rows, row)
	}
	return s
}

// rate returns how many calls a second were answered lately.
func (v *liveView) rate(now sample) int64 {
	if v.past == nil {
		v.past = []sample{{v.player.start, 0}}
	}
	for len(v.past) > 1 && now.at.Sub(v.past[1].at) >= rateOver {
		v.past = v.past[1:]
	}
	first := v.past[0]
	v.past = append(v.past, now)
	return newSpeedReport(now.done-first.done, now.at.Sub(first.at)).OperationsPerSecond
}

// state adds up what is known of a row.
func (r *limitRow) state() liveRow {
	limit := r.counts[0].limit
	row := liveRow{
		entity: r.group.title(r.entity, len(r.counts)), limit: limit.Name, kind: limit.Kind,
		shadow: limit.Shadow, used: new(big.Int), capacity: new(big.Int),
	}
	for _, c := range r.counts {
		row.admitted += c.admitted
		row.denied += c.denied
		capacity, available := big.NewInt(c.capacity), big.NewInt(c.available)
		if c.capacity == 0 { // no answer has named it yet, so nothing is known to be in use
			capacity.SetInt64(c.limit.Capacity)
			available.SetInt64(c.limit.Capacity)
		}
		row.capacity.Add(row.capacity, capacity)
		row.used.Add(row.used, capacity.Sub(capacity, available))
	}
	return row
}
