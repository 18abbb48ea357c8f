package main

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeRunner reports a fixed time per operation, and takes none.
type fakeRunner struct {
	ns     int64 // per operation
	slow   int   // this many of the first runs take a thousand times as long
	denies bool
	ran    *[]string
	err    error
}

func (f *fakeRunner) run(o command) (reply, error) {
	if f.ran != nil {
		*f.ran = append(*f.ran, o.Work)
	}
	r := reply{Ops: int64(o.Ops), NS: int64(o.Ops) * f.ns}
	if f.slow > 0 {
		f.slow--
		r.NS *= 1000
	}
	if f.denies {
		r.Denied = r.Ops
	} else {
		r.Admitted = r.Ops
	}
	return r, f.err
}

func TestTakeTurns(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		second fakeRunner
		empty  bool // the second side's limit is empty
		fails  string
	}{
		{"as it should be", fakeRunner{ns: 200}, false, ""},
		{"denied if nothing is left", fakeRunner{ns: 200, denies: true}, true, ""},
		{"denied", fakeRunner{ns: 200, denies: true}, false, "want all the same"},
		{"admitted if nothing is left", fakeRunner{ns: 200}, true, "want all the same"},
		{"an error", fakeRunner{ns: 200, err: broken}, false, "b: broken"},
	} {
		var ran []string
		a, b := &contestant{}, &contestant{spec: spec{Empty: c.empty}}
		first := fakeRunner{ns: 500, ran: &ran}
		c.second.ran = &ran
		r := &result{
			comparison: &comparison{
				sides: []side{{"a", a, "a"}, {"b", b, "b"}}, ratios: []ratio{{over: 0, under: 1}},
			},
			settings: &settings{rounds: 4, slice: time.Millisecond},
		}
		err := r.takeTurns(t.Context(), map[*contestant]runner{a: &first, b: &c.second})
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: got %v, want an error with %q", c.name, err, c.fails)
			}
			continue
		}
		if err != nil || len(r.rounds) != 4 || r.rounds[0][0].Ops != 2000 {
			t.Fatalf("%s: got %+v, %v, want four rounds of slices of a millisecond", c.name, r.rounds, err)
		}
		want := []string{"a", "b", "b", "a", "b", "a", "a", "b"}
		if got := ran[len(ran)-8:]; !slices.Equal(got, want) {
			t.Errorf("%s: got the order %q, want %q: each is first as often", c.name, got, want)
		}
	}
}

// TestCalibrate checks a slow start, as during a garbage collection: the slices must not shrink to
// a thousandth.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	for _, slow := range []int{0, 1, 2} {
		n, err := calibrate(t.Context(), &fakeRunner{ns: 100, slow: slow}, "a", 10*time.Millisecond)
		if err != nil || n != 100_000 {
			t.Errorf("%d slow runs: got %d operations, %v, want 100000", slow, n, err)
		}
	}
}

func TestSameCounts(t *testing.T) {
	t.Parallel()
	of := func(ops, events int64) reply { return reply{Ops: ops, Counts: map[string]int64{countEvents: events}} }
	for _, c := range []struct {
		other reply
		fails bool
	}{{of(20, 340), false}, {of(20, 345), false}, {of(20, 360), true}, {of(20, 320), true}, {reply{Ops: 20}, true}} {
		if err := sameCounts([]reply{of(10, 170), c.other}); (err != nil) != c.fails {
			t.Errorf("%+v: got %v, want an error: %t", c.other, err, c.fails)
		}
	}
}

// TestWork runs two callers. The first one is always admitted.
func TestWork(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		second operation
		order  command
		want   reply // only the counts
		err    error
	}{
		{
			"so many", func(context.Context) (opResult, error) { return denied, nil },
			command{Ops: 9}, reply{Ops: 10, Admitted: 5, Denied: 5}, nil,
		},
		{
			"nothing to admit", func(context.Context) (opResult, error) { return done, nil },
			command{Ops: 2}, reply{Ops: 2, Admitted: 1}, nil,
		},
		{
			"an error ends both", func(context.Context) (opResult, error) { return done, broken },
			command{NS: int64(time.Hour)}, reply{}, broken,
		},
	} {
		asked := int64(0)
		w := &workload{
			works: map[string]*work{"a": {callers: []operation{
				func(context.Context) (opResult, error) {
					asked++
					return admitted, nil
				}, c.second,
			}}},
			counts: func() map[string]int64 { return map[string]int64{"asked": asked} },
		}
		c.order.Work = "a"
		got, err := w.obey(t.Context(), &c.order)
		if !errors.Is(err, c.err) || got.NS <= 0 || got.Counts["asked"] != asked {
			t.Errorf("%s: got %+v, %v, want error %v", c.name, got, err, c.err)
		}
		if err == nil && (got.Ops != c.want.Ops || got.Admitted != c.want.Admitted || got.Denied != c.want.Denied) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestCycle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec   spec
		caller int
		want   []int
	}{
		{spec{All: 1}, 0, []int{0, 1, 2, 3, 0}},
		{spec{All: 2}, 1, []int{2, 3, 0, 1, 2}},
		{spec{All: 4, First: 2}, 1, []int{3, 0, 1, 2, 3}},
		{spec{All: 4, Each: 1}, 2, []int{2, 2, 2, 2, 2}},
		{spec{All: 4, Each: 2}, 3, []int{3, 0, 3, 0, 3}},
	} {
		c.spec.Entities = []string{"a", "b", "c", "d"}
		cycle := c.spec.cycle(c.caller)
		var got []int
		for range c.want {
			got = append(got, cycle.next())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v, caller %d: got %d, want %d", c.spec, c.caller, got, c.want)
		}
	}
}

// TestClientRefuses checks that the load counts only whole answers that have a lease.
func TestClientRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, answer, want string }{
		{"a refusal", "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", "429"},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", "want 200"},
		{"no number", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "answer"},
		{"no lease", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "no lease_id"},
		{"half an answer", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}", "EOF"},
		{"nothing", "", "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			here, there := net.Pipe()
			defer func() { _ = here.Close() }()
			client := newClient(here, "x")
			go func() {
				defer func() { _ = there.Close() }()
				if _, err := io.ReadFull(there, make([]byte, len(client.reserve))); err == nil {
					_, _ = io.WriteString(there, c.answer)
				}
			}()
			_, err := client.operate(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || client.live {
				t.Errorf("got %v, want an error with %q and no lease", err, c.want)
			}
		})
	}
}
