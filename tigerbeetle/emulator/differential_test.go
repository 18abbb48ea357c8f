//go:build cgo

package emulator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
)

// A server returns expired units some milliseconds late. So no call is made from shortly before the
// end of a pending transfer until well after it.
const (
	calmBefore = 250 * time.Millisecond
	calmAfter  = 200 * time.Millisecond
)

// TestEmulatorEqualsServer checks that the emulator answers like a real server, event by event:
// status and timestamp of every event, all accounts, all transfers in the order of queries, and the
// order in which transfers expire. Each call goes to the server first. The server's timestamps are
// the emulator's clock.
func TestEmulatorEqualsServer(t *testing.T) {
	t.Parallel()
	address, cluster := testkit.TigerBeetle(t)
	client, err := tb.NewClient(tb.BigIntToUint128(cluster), []string{address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	c := newComparison(t, client)
	c.sizes()
	for c.events < soak.Amount(5_000, 100_000) {
		c.round()
	}
	c.report()
}

// comparison makes one sequence of calls on a server and on an emulator.
type comparison struct {
	*dice

	t        *testing.T
	ctx      context.Context
	server   tb.Client
	emulator *Emulator

	// clock is the emulator's clock in nanoseconds: the last timestamp of the server, which came at
	// heard.
	clock uint64
	heard time.Time
	// dues are the ends of pending transfers.
	dues []uint64
	// told is the timestamp up to which the server's expiries have been compared.
	told     uint64
	expiries int
	shown    []string // the events of this round, printed if something differs

	events, calls, reads, compared int
	statuses                       map[string]int
	digest                         hash.Hash
}

func newComparison(t *testing.T, server tb.Client) *comparison {
	t.Helper()
	d := &dice{
		Rand: rand.New(rand.NewPCG(soak.Seed(t), 0)), run: rand.Uint64()>>2 | 1, ledger: rand.Uint32()>>1 | 1<<20,
	}
	c := &comparison{
		dice: d, t: t, ctx: t.Context(), server: server,
		statuses: make(map[string]int), digest: sha256.New(),
	}
	most := 8189
	bad := make([]tb.Transfer, 254)
	for i := range bad {
		bad[i].Timestamp = 1
	}
	if _, err := server.CreateTransfers(bad); errors.Is(err, tb.ErrTooMuchData) {
		most = 253 // a server for development
	}
	now := func() time.Time { return time.Unix(0, int64(c.clock)) }
	c.emulator = New(&Options{Now: now, MaxEvents: most})
	c.probe()
	c.told = c.clock
	return c
}

// fatal ends the test and prints the last events of the round.
func (c *comparison) fatal(format string, args ...any) {
	c.t.Helper()
	for _, s := range c.shown[max(0, len(c.shown)-60):] {
		c.t.Log(s)
	}
	c.t.Fatalf(format, args...)
}

// round creates a set of accounts and makes calls in three stretches: while pending transfers are
// about to expire, after those of a second have expired, and after those of two seconds have.
func (c *comparison) round() {
	c.shown = c.shown[:0]
	first := c.clock
	c.createAccounts(c.begin())
	for range 20 {
		c.step(true)
	}
	c.settled(first)
	c.wait(time.Second)
	for range 8 {
		c.step(false)
	}
	c.settled(first)
	c.wait(2 * time.Second)
	c.step(false)
	c.settled(first)
	c.expired()
	c.dues = c.dues[:0]
}

// step makes a call that creates, and sometimes one that reads.
func (c *comparison) step(short bool) {
	if c.oneIn(8) {
		c.createAccounts(c.moreAccounts())
	}
	c.createTransfers(c.transfers(c.emulator.MaxEvents(), short))
	if c.oneIn(2) {
		c.read()
	}
}

// calm waits if a pending transfer ends about now.
func (c *comparison) calm() {
	for {
		now := c.clock + uint64(time.Since(c.heard))
		until := uint64(0)
		for _, due := range c.dues {
			if now+uint64(calmBefore) > due && c.clock < due+uint64(calmAfter) {
				until = max(until, due+uint64(calmAfter))
			}
		}
		if until == 0 {
			return
		}
		c.sleep(until)
	}
}

// wait waits until the pending transfers that end within timeout from now have expired.
func (c *comparison) wait(timeout time.Duration) {
	until := c.clock
	for _, due := range c.dues {
		if due <= c.clock+uint64(timeout) {
			until = max(until, due+uint64(calmAfter))
		}
	}
	c.sleep(until)
}

// sleep waits until the server's clock has reached an instant.
func (c *comparison) sleep(until uint64) {
	for now := c.clock; now < until; now = c.clock {
		select {
		case <-time.After(time.Duration(until - now)):
		case <-c.ctx.Done():
			c.t.Fatal(c.ctx.Err())
		}
		c.probe()
	}
}

// probe learns the server's time from a transfer that is always refused.
func (c *comparison) probe() {
	results, err := c.server.CreateTransfers([]tb.Transfer{{ID: c.id(1 << 42), Timestamp: 1}})
	if err != nil || len(results) != 1 {
		c.t.Fatal(results, err)
	}
	c.clock, c.heard = results[0].Timestamp, time.Now()
}

// hear sets the emulator's clock to a timestamp of the server. If a pending transfer ended during
// the call, the answers cannot be compared and the test fails.
func (c *comparison) hear(timestamp uint64) {
	for _, due := range c.dues {
		if timestamp >= due && c.clock < due && timestamp < due+uint64(calmAfter) {
			c.t.Fatalf("the server was away for %v, until something ended: try again on a calmer machine",
				time.Duration(timestamp-c.clock))
		}
	}
	c.clock, c.heard = timestamp, time.Now()
}

// begun sets the clock to when a call began, a nanosecond before its first event, by the timestamp
// of event at. The timestamp of a result that says exists is older; if all do, at is -1 and the
// clock stays.
func (c *comparison) begun(at int, timestamp func(i int) uint64) {
	c.calls++
	if at >= 0 {
		c.hear(timestamp(at) - uint64(at) - 1)
	}
}

func (c *comparison) createAccounts(batch []tb.Account) {
	c.t.Helper()
	c.calm()
	want, err := c.server.CreateAccounts(batch)
	if err != nil {
		c.fatal("create_accounts: %v", err)
	}
	c.begun(slices.IndexFunc(want, func(r tb.CreateAccountResult) bool {
		return r.Status != tb.AccountExists
	}), func(i int) uint64 { return want[i].Timestamp })
	got, err := c.emulator.CreateAccounts(c.ctx, batch)
	if err != nil || len(got) != len(want) {
		c.fatal("create_accounts: got %d results, %v, want %d", len(got), err, len(want))
	}
	for i := range batch {
		a := &batch[i]
		c.note("account", want[i].Status.String(), fmt.Sprintf(
			"%s %s/%d/%d %s %d flags %x, %d %d %s %s %s %s",
			c.show(a.ID), a.UserData128, a.UserData64, a.UserData32, c.showLedger(a.Ledger),
			a.Code, a.Flags, a.Timestamp, a.Reserved,
			a.DebitsPending, a.DebitsPosted, a.CreditsPending, a.CreditsPosted))
		if got[i] != want[i] {
			c.fatal("account %d of %d: got %v, want %v", i, len(batch), got[i], want[i])
		}
	}
}

func (c *comparison) createTransfers(batch []tb.Transfer) {
	c.t.Helper()
	c.calm()
	want, err := c.server.CreateTransfers(batch)
	if err != nil {
		c.fatal("create_transfers: %v", err)
	}
	c.begun(slices.IndexFunc(want, func(r tb.CreateTransferResult) bool {
		return r.Status != tb.TransferExists
	}), func(i int) uint64 { return want[i].Timestamp })
	got, err := c.emulator.CreateTransfers(c.ctx, batch)
	if err != nil || len(got) != len(want) {
		c.fatal("create_transfers: got %d results, %v, want %d", len(got), err, len(want))
	}
	for i := range batch {
		t := &batch[i]
		c.note("transfer", want[i].Status.String(), fmt.Sprintf(
			"%s %s>%s %s of %s %s/%d/%d for %d, %s %d flags %x at %d",
			c.show(t.ID), c.show(t.DebitAccountID), c.show(t.CreditAccountID), t.Amount,
			c.show(t.PendingID), t.UserData128, t.UserData64, t.UserData32, t.Timeout,
			c.showLedger(t.Ledger), t.Code, t.Flags, t.Timestamp))
		if want[i].Status == tb.TransferCreated {
			c.made(t)
		}
		if want[i].Status == tb.TransferCreated && t.Timeout > 0 && t.Timeout < 60 {
			c.dues = append(c.dues, want[i].Timestamp+uint64(t.Timeout)*uint64(time.Second))
		}
		if got[i] != want[i] {
			c.fatal("transfer %d of %d: got %v, want %v", i, len(batch), got[i], want[i])
		}
	}
}

// note adds an event to the log.
func (c *comparison) note(kind, status, event string) {
	c.events++
	c.statuses[status]++
	line := kind + " " + event + ": " + status
	c.shown = append(c.shown, line)
	_, _ = fmt.Fprintln(c.digest, line) // writing to a hash never fails
}

// expired compares the transfers that have expired after the previous call of expired, in their
// order.
func (c *comparison) expired() {
	c.t.Helper()
	var want []tb.Uint128
	for {
		page, err := c.server.GetChangeEvents(tb.ChangeEventsFilter{TimestampMin: c.told + 1, Limit: 1000})
		if err != nil {
			c.t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			c.told = page[i].Timestamp
			if page[i].Type == tb.ChangeEventTwoPhaseExpired && page[i].Ledger-c.ledger <= 1 {
				want = append(want, page[i].TransferID)
			}
		}
	}
	got := c.emulator.Expired()[c.expiries:]
	c.expiries += len(got)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			c.fatal("%d transfers have expired, want %d: number %d is another", len(got), len(want), i)
		}
	}
}

func (c *comparison) report() {
	c.t.Logf("%d events in %d calls, compared by %d reads of %d accounts and transfers; %d expired",
		c.events, c.calls, c.reads, c.compared, c.expiries)
	for _, name := range slices.Sorted(maps.Keys(c.statuses)) {
		c.t.Logf("%7d %s", c.statuses[name], name)
	}
	c.t.Logf("SHA-256 of events and statuses: %x", c.digest.Sum(nil))
}
