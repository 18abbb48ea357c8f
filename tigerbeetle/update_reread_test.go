//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"testing"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// TestUnnamedLimitAdjustedElsewhere checks that a limit that an update does not name keeps what the
// lease stands for now, even if another server has adjusted it.
func TestUnnamedLimitAdjustedElsewhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(20), 0), c.open(fourLimits(20), 0)
	lease, err := a.Reserve(t.Context(), &weir.Request{
		Entity: "e", Resource: "r", Costs: weir.Costs{"b": 2, "m": 2, "s": 2, "w": 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	settle := func(_ *weir.Receipt, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	settle(b.Adjust(t.Context(), lease.ID, 1, []weir.Costs{{"b": 5, "m": 6, "s": 1, "w": 7}}))
	settle(a.Adjust(t.Context(), lease.ID, 2, []weir.Costs{{"m": 4}}))
	c.uses(b, map[string]int64{"b": 5, "m": 4, "s": 1, "w": 7})
	settle(b.Adjust(t.Context(), lease.ID, 3, []weir.Costs{{"b": 8}}))
	settle(a.Complete(t.Context(), lease.ID, []weir.Costs{{"m": 3}}))
	c.uses(b, map[string]int64{"b": 8, "m": 3, "s": 0, "w": 7})
}

// historyHookLedger calls a function once, before the cluster is asked for a lease's transfers.
type historyHookLedger struct {
	Ledger

	happens func() error
}

func (l *historyHookLedger) QueryTransfers(
	ctx context.Context, f tb.QueryFilter,
) ([]tb.Transfer, error) {
	if happens := l.happens; happens != nil {
		l.happens = nil
		if err := happens(); err != nil {
			return nil, err
		}
	}
	return l.Ledger.QueryTransfers(ctx, f)
}

// leased returns a lease of server a that server b has renewed.
func leased(t *testing.T) (a, b *member, id weir.LeaseID) {
	t.Helper()
	c := newCluster(t, 0)
	a, b = c.open(fourLimits(20), 0), c.open(fourLimits(20), 0)
	lease, err := a.Reserve(t.Context(), &weir.Request{
		Entity: "e", Resource: "r", Costs: weir.Costs{"b": 2, "s": 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Extend(t.Context(), lease.ID); err != nil {
		t.Fatal(err)
	}
	return a, b, lease.ID
}

// TestEndedDuringReread has another server end a lease while an update, which found it changed,
// reads it again. If that end is the same as the update, the update is answered as a repeat;
// otherwise it is a conflict.
func TestEndedDuringReread(t *testing.T) {
	t.Parallel()
	complete := func(n int64) func(*member, weir.LeaseID) error {
		return func(m *member, id weir.LeaseID) error {
			return last(m.Complete(t.Context(), id, []weir.Costs{{"b": n}}))
		}
	}
	cancel := func(m *member, id weir.LeaseID) error { return last(m.Cancel(t.Context(), id)) }
	for name, tt := range map[string]struct {
		first, second func(*member, weir.LeaseID) error
		want          string
	}{
		"cancelled twice":              {cancel, cancel, "done"},
		"completed twice":              {complete(1), complete(1), "done"},
		"completed with other actuals": {complete(1), complete(2), string(weir.Conflict)},
		"completed, then cancelled":    {complete(1), cancel, string(weir.Conflict)},
		"cancelled, then completed":    {cancel, complete(1), string(weir.Conflict)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, id := leased(t)
			meanwhile := &historyHookLedger{a.net.Ledger, func() error { return tt.first(b, id) }}
			a.net.Ledger = meanwhile
			if got := describeAnswer(tt.second(a, id)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if meanwhile.happens != nil {
				t.Error("the lease was not read again")
			}
		})
	}
}

// TestMistakeElsewhere checks that an ended lease or a later adjust is reported before a mistake in
// an update, even if another server caused it.
func TestMistakeElsewhere(t *testing.T) {
	t.Parallel()
	wrong := []weir.Costs{{"b": 1, "w": 1}} // the lease has no w
	for name, tt := range map[string]struct {
		elsewhere          func(*member, weir.LeaseID) error
		adjusts, completes string
	}{
		"live": {
			func(*member, weir.LeaseID) error { return nil },
			string(weir.Invalid), string(weir.Invalid),
		},
		"adjusted": {func(m *member, id weir.LeaseID) error {
			return last(m.Adjust(t.Context(), id, 7, []weir.Costs{{"b": 1}}))
		}, "done", string(weir.Invalid)},
		"cancelled": {func(m *member, id weir.LeaseID) error {
			return last(m.Cancel(t.Context(), id))
		}, string(weir.Ended), string(weir.Conflict)},
		"completed": {func(m *member, id weir.LeaseID) error {
			return last(m.Complete(t.Context(), id, []weir.Costs{{"b": 1}}))
		}, string(weir.Ended), string(weir.Conflict)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, id := leased(t)
			if err := tt.elsewhere(b, id); err != nil {
				t.Fatal(err)
			}
			silent := &historyHookLedger{a.net.Ledger, func() error { return errors.New("no answer") }}
			a.net.Ledger = silent
			if err := last(a.Complete(t.Context(), id, wrong)); !errors.Is(err, weir.Invalid) {
				t.Errorf("complete, while the cluster does not answer: %v", err)
			}
			if got := describeAnswer(last(a.Adjust(t.Context(), id, 7, wrong))); got != tt.adjusts {
				t.Errorf("adjust: got %s, want %s", got, tt.adjusts)
			}
			a, b, id = leased(t)
			if err := tt.elsewhere(b, id); err != nil {
				t.Fatal(err)
			}
			if got := describeAnswer(last(a.Complete(t.Context(), id, wrong))); got != tt.completes {
				t.Errorf("complete: got %s, want %s", got, tt.completes)
			}
		})
	}
}
