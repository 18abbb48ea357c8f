package stream

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

// takeOver waits until another aggregator of the table has written no usage for a while, and stores
// that this one counts from its last write on. It reads the whole stream for that, and counts
// nothing.
//
// What the other one had not read at its last write is not counted by it, and may not be by this
// one: that is less than a batch of the other one, and is inside the gap that is marked.
func (r *Reader) takeOver(ctx context.Context) error {
	began := r.o.Now()
	r.log.Info("waiting until the other aggregator writes no more", "quiet", r.o.Quiet)
	r.foreign = time.Time{}
	for {
		if err := r.listShards(ctx); err != nil {
			return err
		}
		busy := false
		for _, s := range r.readable() {
			records, full, err := r.read(ctx, s)
			if err != nil {
				return err
			}
			r.sift(s, records)
			busy = busy || full || s.done
			r.relist = r.relist || s.done
		}
		now := r.o.Now()
		quiet := now.Sub(laterOf(began, r.foreign)) >= r.o.Quiet
		if !busy && quiet && r.readTo(began) {
			return r.takenOver(ctx, now)
		}
		if busy {
			continue
		}
		if err := r.o.Wait(ctx, r.pause()); err != nil {
			return err
		}
	}
}

// takenOver stores that this aggregator counts, and makes the session begin with the stream again.
func (r *Reader) takenOver(ctx context.Context, now time.Time) error {
	since := laterOf(r.foreign, now.Add(-aggregator.Retention))
	r.log.Info("took the table over", "counting_since", since)
	if !r.foreign.IsZero() {
		gap := &schema.Gap{
			To: r.foreign.Add(time.Second), MarkedAt: now,
			Reason: "until then another aggregator counted this table",
		}
		if err := r.mark(ctx, gap); err != nil {
			return err
		}
	}
	a := &schema.Aggregator{
		Label: r.label, Since: since, TakenOver: now,
		Days: weir.Daily.Start(since), Months: weir.Monthly.Start(since),
	}
	if err := put(ctx, r.tables.Client, a.Item(), nil); err != nil {
		return err
	}
	r.shards, r.relist, r.recheck = make(map[string]*shard), true, false
	state, err := readState(ctx, r.tables.Client)
	if err != nil {
		return err
	}
	r.state = state
	r.done.Records = 0
	clear(r.done.Skipped)
	return nil
}
