//go:build cgo

package tigerbeetle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// brokenCase is a case that may catch a fault.
type brokenCase struct {
	name string
	run  func(t conformance.T, x *wrong)
}

// brokenCases returns the cases of the suites that this store can play, and the cases with several
// servers.
func brokenCases(t conformance.T) []brokenCase {
	t.Helper()
	h := wrongHarness(nil)
	service := h.Service(t)
	var out []brokenCase
	for _, c := range slices.Concat(conformance.Cases(), h.Cases()) {
		if c.LeftOut(&service) != "" {
			continue
		}
		out = append(out, brokenCase{c.Name, func(t conformance.T, x *wrong) {
			c.Run(t, wrongHarness(x).Service(t))
		}})
	}
	// Cases of the store's seam open their own stores, by the harness that made them.
	for i, c := range h.Cases() {
		at := slices.IndexFunc(out, func(b brokenCase) bool { return b.name == c.Name })
		if at >= 0 {
			out[at].run = func(t conformance.T, x *wrong) {
				h := wrongHarness(x)
				h.Cases()[i].Run(t, h.Service(t))
			}
		}
	}
	return append(out, serverCases()...)
}

// wrongHarness returns a harness that opens stores on emulators that receive tampered calls.
func wrongHarness(x *wrong) conformance.StoreHarness {
	h := harness()
	h.Open = func(t conformance.T, s conformance.Setup) driver.Store {
		t.Helper()
		return newTampered(s.Start, x).join(t, s.Definitions)
	}
	return h
}

// TestWrongStoresAreCaught checks that each fault between weir and the cluster makes the cases
// about it fail, and that these pass without it. A check that has never failed proves little.
func TestWrongStoresAreCaught(t *testing.T) {
	t.Parallel()
	cases := brokenCases(t)
	var mu sync.Mutex
	var rows []string
	t.Run("each", func(t *testing.T) {
		for _, x := range wrongs() {
			t.Run(x.name, func(t *testing.T) {
				t.Parallel()
				if len(x.caught) == 0 {
					t.Errorf("nobody is said to catch it; these do: %q", catchers(t, cases, x))
				}
				for _, about := range x.caught {
					c := caseAbout(t, cases, about)
					if r := conformance.Record(t, func(t conformance.T) { c.run(t, nil) }); r.Failed {
						t.Errorf("%q fails though nothing is wrong: %q", c.name, r.Messages)
					}
					if r := conformance.Record(t, func(t conformance.T) { c.run(t, x) }); !r.Failed {
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
	t.Logf("%d wrongs caught:\n%s", len(wrongs()), strings.Join(rows, "\n"))
}

// catchers returns the first two cases that fail with a fault.
func catchers(t *testing.T, cases []brokenCase, x *wrong) []string {
	t.Helper()
	var names []string
	for _, c := range cases {
		if conformance.Record(t, func(t conformance.T) { c.run(t, x) }).Failed &&
			!conformance.Record(t, func(t conformance.T) { c.run(t, nil) }).Failed {
			names = append(names, c.name)
		}
		if len(names) == 2 {
			break
		}
	}
	return names
}

func caseAbout(t *testing.T, cases []brokenCase, about string) brokenCase {
	t.Helper()
	i := slices.IndexFunc(cases, func(c brokenCase) bool { return c.name == about })
	if i < 0 {
		t.Fatalf("no case is called %q", about)
	}
	return cases[i]
}

// TestEveryMistakeHasACaseHere checks that each mistake has a case in the suite that this store
// plays, or cannot be made on it.
func TestEveryMistakeHasACaseHere(t *testing.T) {
	t.Parallel()
	const shards = "no limit is divided into shards: an account has no limit of writes"
	elsewhere := map[string]string{
		"W1": shards, "W2": shards, "W3": shards, "W4": shards, "W5": shards,
	}
	h := harness()
	service := h.Service(t)
	all := slices.Concat(conformance.Cases(), h.Cases())
	for _, m := range conformance.Mistakes() {
		n := 0
		for _, c := range all {
			if strings.Contains(c.Name, m.Name) && c.LeftOut(&service) == "" {
				n++
			}
		}
		if (n == 0) != (elsewhere[m.Name] != "") {
			t.Errorf("%s: %d cases guard against it, and elsewhere: %q", m.Name, n, elsewhere[m.Name])
		}
		t.Logf("%s: %d cases %s", m.Name, n, elsewhere[m.Name])
	}
}

// wrong is a defect between weir and the cluster, with the cases that catch it.
type wrong struct {
	name   string
	caught []string
	// change tampers with a call.
	change func(c *tamperedCall)
}

// tampered is an emulator that changes calls before it carries them out. It outlives the servers
// that use it.
type tampered struct {
	*emulator.Emulator
	clock *worldClock
	wrong *wrong

	mu sync.Mutex
	// pending holds the pending transfers that the servers sent, unchanged.
	pending map[tb.Uint128]tb.Transfer
	// renamed maps the IDs that were changed to the ones made up instead; made counts those.
	renamed map[tb.Uint128]tb.Uint128
	made    uint64
	// periods holds the first account of each budget.
	periods map[accountName]tb.Uint128
	budgets map[tb.Uint128]accountName
}

func newTampered(start time.Time, x *wrong) *tampered {
	clock := &worldClock{}
	clock.to(start)
	return &tampered{
		Emulator: emulator.New(&emulator.Options{Now: clock.now, Tick: time.Millisecond}),
		clock:    clock, wrong: x,
		pending: make(map[tb.Uint128]tb.Transfer), renamed: make(map[tb.Uint128]tb.Uint128),
		periods: make(map[accountName]tb.Uint128), budgets: make(map[tb.Uint128]accountName),
	}
}

// join opens another server's store.
func (w *tampered) join(t conformance.T, d *weir.Definitions) *timedStore {
	t.Helper()
	s, err := OpenLedger(t.Context(), w, &Options{Definitions: d, Poll: -1, Now: w.clock.now})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return &timedStore{s, w.clock}
}

// Close does nothing, because other stores use the cluster.
func (w *tampered) Close() error { return nil }

// CreateAccounts records the first account of every budget.
func (w *tampered) CreateAccounts(
	ctx context.Context, accounts []tb.Account,
) ([]tb.CreateAccountResult, error) {
	w.mu.Lock()
	for i := range accounts {
		a := &accounts[i]
		if a.Code != codeBudget {
			continue
		}
		name := accountName{a.UserData128, a.UserData64, weir.Budget}
		w.budgets[a.ID] = name
		if _, ok := w.periods[name]; !ok {
			w.periods[name] = a.ID
		}
	}
	w.mu.Unlock()
	return w.Emulator.CreateAccounts(ctx, accounts)
}

// CreateTransfers carries out the tampered call. Events that were left out are answered as if they
// had been created.
func (w *tampered) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	if w.wrong == nil {
		return w.Emulator.CreateTransfers(ctx, transfers)
	}
	c := &tamperedCall{w: w, meant: transfers, all: slices.Clone(transfers), left: make([]bool, len(transfers))}
	w.mu.Lock()
	for i := range transfers {
		if transfers[i].Flags&flagPending != 0 {
			w.pending[transfers[i].ID] = transfers[i]
		}
	}
	w.wrong.change(c)
	kept := c.kept()
	w.mu.Unlock()
	results, err := w.Emulator.CreateTransfers(ctx, kept)
	if err != nil {
		return nil, err
	}
	return c.answers(results), nil
}

// tamperedCall is a call that a fault may change.
type tamperedCall struct {
	w *tampered
	// meant are the events that the server sent, and all the same events as changed. left says
	// which of them are left out.
	meant, all []tb.Transfer
	left       []bool
}

// kept returns the events to carry out. The linked chain ends with the last event that is not left
// out.
func (c *tamperedCall) kept() []tb.Transfer {
	var kept []tb.Transfer
	for i := range c.all {
		switch {
		case !c.left[i]:
			kept = append(kept, c.all[i])
		case c.all[i].Flags&flagLinked == 0 && len(kept) > 0:
			kept[len(kept)-1].Flags &^= flagLinked
		}
	}
	return kept
}

func (c *tamperedCall) answers(results []tb.CreateTransferResult) []tb.CreateTransferResult {
	out := make([]tb.CreateTransferResult, len(c.all))
	added := tb.CreateTransferResult{Status: tb.TransferCreated}
	for i := range results {
		added.Timestamp = max(added.Timestamp, results[i].Timestamp)
		if results[i].Status == tb.TransferLinkedEventFailed {
			added.Status = tb.TransferLinkedEventFailed
		}
	}
	for i := range out {
		out[i] = added
		if !c.left[i] {
			out[i], results = results[0], results[1:]
		}
	}
	return out
}

// code returns the code of an event, or for a post or void the code of its pending transfer.
func (c *tamperedCall) code(i int) uint16 {
	if t := &c.meant[i]; c.resolves(i) {
		return c.w.pending[t.PendingID].Code
	}
	return c.meant[i].Code
}

// resolves reports whether an event is a post or void.
func (c *tamperedCall) resolves(i int) bool { return c.meant[i].Flags&(flagPost|flagVoid) != 0 }

func (c *tamperedCall) is(i int, flags uint16) bool { return c.meant[i].Flags&flags != 0 }

// amount changes an event's amount.
func (c *tamperedCall) amount(i int, f func(n uint64) uint64) {
	c.all[i].Amount = tb.ToUint128(f(lowUint64(c.meant[i].Amount)))
}

// The results of [tamperedCall.header] for a call that ends a lease. Such a call makes no token, so
// they are no codes of the ledger.
const (
	leaseCompleted uint16 = 12
	leaseCancelled uint16 = 13
)

// header returns the code of the token that the call makes, leaseCompleted or leaseCancelled if it
// ends the lease, or 0 if it does neither.
func (c *tamperedCall) header() uint16 {
	for i := range c.meant {
		switch t := &c.meant[i]; {
		case c.resolves(i) && t.UserData32&endMark != 0 && c.is(i, flagPost):
			return leaseCompleted
		case c.resolves(i) && t.UserData32&endMark != 0:
			return leaseCancelled
		case t.Code == codeLease || t.Code == codeAdjusted || t.Code == codeExtended:
			return t.Code
		}
	}
	return 0
}
