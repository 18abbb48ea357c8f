package dynamodb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/internal/soak"
)

// TestWrongStoresAreCaught checks the cases: with each fault between weir and the table, the cases
// about that fault fail. A plain run takes a sixth of the faults and the first case of each; a long
// run takes all of them.
func TestWrongStoresAreCaught(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	var mu sync.Mutex
	var rows []string
	some := wrongs()
	if !soak.On() {
		rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = some[:len(some)/6]
	}
	t.Run("each", func(t *testing.T) {
		for _, x := range some {
			t.Run(x.name, func(t *testing.T) {
				t.Parallel()
				for _, about := range x.caught[:soak.Amount(1, len(x.caught))] {
					c := caseAbout(t, about)
					r := recorded(t, table, x, c)
					if !r.Failed {
						t.Errorf("not caught by %q", c.name)
						continue
					}
					mu.Lock()
					rows = append(rows, fmt.Sprintf("%-60s %s", x.name, c.name))
					mu.Unlock()
				}
			})
		}
	})
	slices.Sort(rows)
	t.Logf("%d wrongs caught:\n%s", len(rows), strings.Join(rows, "\n"))
}

// TestEveryWrongHasACase checks that the cases that are to catch a wrong store exist.
func TestEveryWrongHasACase(t *testing.T) {
	t.Parallel()
	for _, x := range wrongs() {
		t.Run(x.name, func(t *testing.T) {
			for _, about := range x.caught {
				caseAbout(t, about)
			}
		})
	}
}

// caseAbout returns the first case whose name begins with the given text.
func caseAbout(t *testing.T, about string) mistakeCase {
	t.Helper()
	for _, c := range mistakeCases() {
		if strings.HasPrefix(c.name, about) {
			return c
		}
	}
	t.Fatalf("no case is about %q", about)
	return mistakeCase{}
}

// recorded runs a case with something wrong. The case also fails if it waits for something that
// never happens.
func recorded(t *testing.T, table *Table, x *wrong, c mistakeCase) conformance.Result {
	t.Helper()
	return conformance.Record(t, func(rt conformance.T) {
		ctx, cancel := context.WithTimeout(rt.Context(), time.Minute)
		defer cancel()
		inTableWorld(bounded{rt, ctx}, table, x, c.play)
	})
}

// bounded is a T with a context that ends.
type bounded struct {
	conformance.T
	ctx context.Context
}

// Context returns a context that ends with the time limit of a case.
func (b bounded) Context() context.Context { return b.ctx }

// TestEveryMistakeHasACaseHere checks that each of the mistakes has a case here or in the suite, or
// cannot be made on this store.
func TestEveryMistakeHasACaseHere(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]string{
		"U1: usage": "the aggregator writes usage", "U2: usage": "the aggregator writes usage",
		"W5":                            "the aggregator reads the stream",
		"amount ignored by concurrency": "there are no concurrency limits",
		"leaked slots":                  "there are no concurrency limits",
	}
	h := harness(t, nil)
	service := h.Service(t)
	all := append(conformance.Cases(), h.Cases()...)
	for _, m := range conformance.Mistakes() {
		here, there := 0, 0
		for _, c := range mistakeCases() {
			if strings.HasPrefix(c.name, m.Name) {
				here++
			}
		}
		for _, c := range all {
			if strings.Contains(c.Name, m.Name) && c.LeftOut(&service) == "" {
				there++
			}
		}
		if here+there == 0 && elsewhere[m.Name] == "" {
			t.Errorf("no case guards against %s", m.Name)
		}
		t.Logf("%s: %d cases here, %d in the suite %s", m.Name, here, there, elsewhere[m.Name])
	}
}
