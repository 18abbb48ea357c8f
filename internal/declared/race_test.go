package declared_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/soak"
)

// gate is a network that holds back one sort of request until it is opened.
type gate struct {
	operation string
	after     int           // requests of the sort that pass
	reached   chan struct{} // closed when the first one is held back
	open      chan struct{}

	mu   sync.Mutex
	seen int
}

func newGate(operation string, after int) *gate {
	return &gate{
		operation: operation, after: after, reached: make(chan struct{}), open: make(chan struct{}),
	}
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+g.operation) {
		g.mu.Lock()
		g.seen++
		n := g.seen
		g.mu.Unlock()
		if n == g.after+1 {
			close(g.reached)
		}
		if n > g.after {
			<-g.open
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// applied is the result of an apply.
type applied struct {
	plan *httpapi.LimitsPlan
	err  error
}

// applyLater begins an apply.
func (a *admin) applyLater(f *httpapi.LimitsFile) <-chan applied {
	done := make(chan applied, 1)
	go func() {
		p, err := a.ApplyLimits(a.w.Context(), f)
		done <- applied{p, err}
	}()
	return done
}

// other is a file that differs from before in other places than after does.
const other = `version: 1
system: {limits: {rpm: {capacity: 602}, tpm: {capacity: 900}}}
resources:
  a: {limits: {rpm: {capacity: 102}}}
  b: {limits: {rpm: {capacity: 102}}}
  c: {limits: {rpm: {capacity: 102}}}
  e: {limits: {rpm: {capacity: 102}}}
entities:
  mid: {resources: {a: {limits: {rpm: {capacity: 52}}}}}
  top: {parent: mid}
  old: {parent: top, resources: {a: {limits: {rpm: {capacity: 5}}}}}
`

// TestTwoApplies lets two administrators apply different files at once, many times. Both have
// made their plans before either claims the record. One wins, the other says who has won, and the
// store has one of the files, never parts of both.
func TestTwoApplies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	won := map[string]int{}
	for run := range soak.Amount(20, 50) {
		name := w.namespace(fmt.Sprintf("run-%d", run))
		w.open("carl", inNamespace(name)).apply(before)
		files := map[string]string{"ann": after, "bob": other}
		done := map[string]<-chan applied{}
		var gates []*gate
		for principal, text := range files {
			g := newGate("TransactWriteItems", 0)
			a := w.open(principal, inNamespace(name), through(g))
			done[principal] = a.applyLater(&httpapi.LimitsFile{Text: text, Yes: true})
			gates = append(gates, g)
		}
		for _, g := range gates {
			<-g.reached
		}
		for _, g := range gates {
			close(g.open)
		}
		var winner strings.Builder
		answers := map[string]applied{}
		for principal := range files {
			if answers[principal] = <-done[principal]; answers[principal].err == nil {
				winner.WriteString(principal)
			}
		}
		if winner.String() != "ann" && winner.String() != "bob" {
			t.Fatalf("run %d: %q have won: %+v", run, winner.String(), answers)
		}
		won[winner.String()]++
		for principal, a := range answers {
			if principal == winner.String() {
				continue
			}
			if !errors.Is(a.err, weir.Conflict) || !strings.Contains(a.err.Error(), winner.String()) {
				t.Errorf("run %d: the loser was told %v, want a conflict that names %s", run, a.err, winner.String())
			}
		}
		if p := w.open("eye", inNamespace(name)).plan(files[winner.String()]); !p.Nothing() {
			t.Errorf("run %d: %s has won, and the store differs from that file:\n%s",
				run, winner.String(), lines(p.Changes))
		}
	}
	t.Logf("won: %v", won)
}

// TestTakenOver pauses an apply in the middle of its changes. Another one is refused at first,
// then takes over and ends. When the first goes on, it changes nothing more.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for run := range soak.Amount(6, 20) {
		name := w.namespace(fmt.Sprintf("run-%d", run))
		w.prepare(name)
		g := newGate("TransactWriteItems", 1+random.IntN(15)) // after the claim
		paused := w.open("ann", inNamespace(name), through(g)).
			applyLater(&httpapi.LimitsFile{Text: after, Yes: true})
		<-g.reached
		b := w.open("bob", inNamespace(name))
		_, err := b.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: other, Yes: true})
		since := w.now().Format(time.RFC3339)
		if !errors.Is(err, weir.Conflict) || !strings.Contains(err.Error(), "ann is applying") ||
			!strings.Contains(err.Error(), since) {
			t.Fatalf("seed %d: beside an apply: got %v, want a conflict with ann and %s", seed, err, since)
		}
		takeOver := run%2 == 0 // otherwise the mark is too old
		if !takeOver {
			w.advance(61 * time.Second)
		}
		file := &httpapi.LimitsFile{Text: other, Yes: true, TakeOver: takeOver}
		p, err := b.ApplyLimits(t.Context(), file)
		if err != nil || p.Failed > 0 {
			t.Fatalf("seed %d: take over: %+v, %v", seed, p, err)
		}
		taken := w.scanned(name)
		close(g.open)
		a := <-paused
		if a.err != nil || a.plan.Failed == 0 {
			t.Errorf("seed %d: the paused apply: %+v, %v; want failed changes", seed, a.plan, a.err)
		}
		if d := difference(taken, w.scanned(name)); d != "" {
			t.Errorf("seed %d: the paused apply has changed something after it was taken over:\n%s",
				seed, d)
		}
		w.wantEqualChanges(b, other)
	}
}

// wantEqualChanges checks that an apply of the file has nothing to do.
func (w *world) wantEqualChanges(a *admin, text string) {
	w.Helper()
	if p := a.plan(text); !p.Nothing() {
		w.Errorf("not equal:\n%s", lines(p.Changes))
	}
}
