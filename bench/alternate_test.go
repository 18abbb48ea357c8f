package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// fakeRunner takes as long as it says, in no time.
type fakeRunner struct {
	ns   int64 // for an operation
	slow int   // this many of the first runs take a thousand times as long
	ran  *[]string
	err  error
}

func (f *fakeRunner) run(work string, ops int) (measure, error) {
	if f.ran != nil {
		*f.ran = append(*f.ran, work)
	}
	ns := f.ns
	if f.slow > 0 {
		f.slow--
		ns *= 1000
	}
	return measure{Ops: int64(ops), NS: int64(ops) * ns, Admitted: int64(ops)}, f.err
}

func fakeItem() *item {
	return &item{
		name: "fake", sides: []side{{"a", 0, "a"}, {"b", 1, "b"}},
		ratios: []ratio{{over: 0, under: 1, goal: 3_000}},
	}
}

func TestAlternate(t *testing.T) {
	t.Parallel()
	var ran []string
	worlds := []runner{&fakeRunner{ns: 500, ran: &ran}, &fakeRunner{ns: 200, ran: &ran}}
	r, err := alternate(context.Background(), fakeItem(), worlds, 4, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ran[len(ran)-8:], []string{"a", "b", "b", "a", "b", "a", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got the order %q, want %q: each is first as often", got, want)
	}
	if got, want := r.ratios(r.item.ratios[0]), []int64{2500, 2500, 2500, 2500}; !slices.Equal(got, want) {
		t.Errorf("got the ratios %d, want %d", got, want)
	}
	if r.totals[0].Ops != 4*2000 || r.totals[1].Ops != 4*5000 {
		t.Errorf("got %d and %d operations, want slices of a millisecond", r.totals[0].Ops, r.totals[1].Ops)
	}
}

func TestAlternateFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	worlds := []runner{&fakeRunner{ns: 1}, &fakeRunner{ns: 1, err: broken}}
	if _, err := alternate(context.Background(), fakeItem(), worlds, 1, time.Millisecond); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	worlds[1] = worlds[0]
	if _, err := alternate(ctx, fakeItem(), worlds, 1, time.Millisecond); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// TestCalibrate has a slow start, as a collection of garbage makes one: the slices must not become a
// thousandth of what they should be.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	for _, slow := range []int{0, 1, 2} {
		n, err := calibrate(context.Background(), &fakeRunner{ns: 100, slow: slow}, "a", 10*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if n != 100_000 {
			t.Errorf("%d slow runs: got %d operations, want 100000", slow, n)
		}
	}
	if _, err := calibrate(context.Background(), idle{}, "a", time.Millisecond); err == nil {
		t.Error("a work that does nothing: got no error")
	}
}

// idle does nothing.
type idle struct{}

func (idle) run(string, int) (measure, error) { return measure{}, nil }
