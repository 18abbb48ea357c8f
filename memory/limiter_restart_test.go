package memory_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// process is a limiter over a snapshot file, which can be restarted.
type process struct {
	*limiter.Limiter
	t    *testing.T
	file string
	now  time.Time
}

func startProcess(t *testing.T, o *limiter.Options) *process {
	t.Helper()
	p := &process{t: t, file: filepath.Join(t.TempDir(), "snapshot"), now: start}
	p.restart(o)
	return p
}

func (p *process) restart(o *limiter.Options) {
	p.t.Helper()
	if p.Limiter != nil {
		if err := p.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
	store, err := memory.OpenSnapshot(p.file, &memory.SnapshotOptions{Definitions: &weir.Definitions{
		System: []weir.Limit{{Name: "n", Kind: weir.Window, Capacity: 1000, Window: 24 * time.Hour}},
	}})
	if err != nil {
		p.t.Fatal(err)
	}
	options := limiter.Options{}
	if o != nil {
		options = *o
	}
	options.Now = func() time.Time { return p.now }
	if p.Limiter, err = limiter.New(store, &options); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = store.Close() })
}

func (p *process) ask(id weir.LeaseID) (*weir.Lease, error) {
	p.t.Helper()
	return p.Reserve(p.t.Context(), &weir.Request{LeaseID: id, Entity: "a", Resource: "r",
		Costs: weir.Costs{"n": 10}})
}

func (p *process) used(want int64) {
	p.t.Helper()
	statuses, err := p.Status(p.t.Context(), "a", "r")
	if err != nil {
		p.t.Fatal(err)
	}
	if got := 1000 - statuses[0].Available; got != want {
		p.t.Errorf("used: got %d, want %d", got, want)
	}
}

// The lease of a repeated reservation continues the sequence numbers of the first one.
func TestRestartKeepsTheSequence(t *testing.T) {
	t.Parallel()
	p := startProcess(t, nil)
	id := weir.NewLeaseID(p.now)
	lease, err := p.ask(id)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		if _, err := lease.Adjust(t.Context(), weir.Costs{"n": 11 + n}); err != nil {
			t.Fatal(err)
		}
	}
	for _, restart := range []bool{false, true} {
		if restart {
			p.restart(nil)
		}
		lease, err := p.ask(id)
		if err != nil || !lease.Replay {
			t.Fatalf("got %+v, %v; want a replay", lease, err)
		}
		if _, err := lease.Adjust(t.Context(), weir.Costs{"n": 100 + lease.Seq}); err != nil {
			t.Fatal(err)
		}
		p.used(100 + lease.Seq)
	}
}

// A lease that the store knows is answered even if its ID is old.
func TestRestartKnowsALiveLease(t *testing.T) {
	t.Parallel()
	p := startProcess(t, nil)
	id := weir.NewLeaseID(p.now)
	if _, err := p.ask(id); err != nil {
		t.Fatal(err)
	}
	p.now = p.now.Add(30 * time.Minute)
	p.restart(nil)
	if lease, err := p.ask(id); err != nil || !lease.Replay {
		t.Errorf("got %+v, %v; want a replay", lease, err)
	}
	if _, err := p.ask(weir.NewLeaseID(start)); !errors.Is(err, weir.Invalid) {
		t.Errorf("an unknown ID as old: got %v, want invalid", err)
	}
	p.used(10)
}

// The next process also refuses an ID that was forgotten, whatever it remembers and whatever its
// clock says.
func TestRestartRefusesForgottenIDs(t *testing.T) {
	t.Parallel()
	short := &limiter.Options{LeaseMemory: time.Minute}
	for _, tt := range []struct {
		name          string
		before, after *limiter.Options
		ahead         time.Duration // how far the first process's clock is ahead
	}{
		{"a longer memory", short, nil, 0},
		{"a clock that was ahead", nil, nil, 20 * time.Minute},
	} {
		p := startProcess(t, tt.before)
		id := weir.NewLeaseID(p.now)
		lease, err := p.ask(id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lease.Complete(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.now = p.now.Add(2*time.Minute + tt.ahead)
		other, err := p.ask(weir.NewLeaseID(p.now)) // its call sweeps the first lease
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.now = p.now.Add(-tt.ahead)
		p.restart(tt.after)
		if _, err := p.ask(id); err == nil {
			t.Errorf("%s: the ID was charged twice", tt.name)
		}
		p.used(10)
	}
}

// The next process remembers a cancel that came before its reserve, and forgets it in time.
func TestRestartKnowsAVoidedID(t *testing.T) {
	t.Parallel()
	p := startProcess(t, nil)
	id, other := weir.NewLeaseID(p.now), weir.NewLeaseID(p.now)
	if _, err := p.Cancel(t.Context(), id); !errors.Is(err, weir.UnknownLease) {
		t.Fatalf("cancel: got %v, want %q", err, weir.UnknownLease)
	}
	for range 2 {
		p.restart(nil)
		if _, err := p.ask(id); !errors.Is(err, weir.Ended) {
			t.Errorf("reserve: got %v, want %q", err, weir.Ended)
		}
		if _, err := p.Cancel(t.Context(), id); !errors.Is(err, weir.UnknownLease) {
			t.Errorf("cancel again: got %v, want %q", err, weir.UnknownLease)
		}
	}
	p.used(0)
	if _, err := p.ask(other); err != nil {
		t.Errorf("reserve with another ID: %v", err)
	}
	p.used(10)
	p.now = p.now.Add(10*time.Minute + time.Millisecond)
	p.restart(nil)
	if _, err := p.ask(id); !errors.Is(err, weir.Invalid) {
		t.Errorf("reserve with a forgotten ID: got %v, want %q", err, weir.Invalid)
	}
	p.used(10)
}
