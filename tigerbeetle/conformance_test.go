//go:build cgo

package tigerbeetle

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/internal/soak"
)

// worldClock is a cluster's clock that goes with the calls' own: a world has no other time.
type worldClock struct{ ns atomic.Int64 }

func (c *worldClock) now() time.Time { return time.Unix(0, c.ns.Load()) }

// to brings the clock to an instant, never back.
func (c *worldClock) to(t time.Time) {
	for {
		old := c.ns.Load()
		if t.UnixNano() <= old || c.ns.CompareAndSwap(old, t.UnixNano()) {
			return
		}
	}
}

// timed is a store on an emulator whose clock each call brings to its now.
type timed struct {
	*Store
	clock *worldClock
}

func (t *timed) Reserve(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
	t.clock.to(now)
	return t.Store.Reserve(ctx, now, r)
}

func (t *timed) Settle(ctx context.Context, now time.Time, s *weir.Settlement) (*weir.Outcome, error) {
	t.clock.to(now)
	return t.Store.Settle(ctx, now, s)
}

func (t *timed) Status(
	ctx context.Context, now time.Time, of []weir.Subject, resolve weir.Resolver,
) ([]weir.LimitStatus, error) {
	t.clock.to(now)
	return t.Store.Status(ctx, now, of, resolve)
}

func (t *timed) RecoverLease(ctx context.Context, now time.Time, id weir.LeaseID) (*weir.LeaseRecord, error) {
	t.clock.to(now)
	return t.Store.RecoverLease(ctx, now, id)
}

func (t *timed) Resources(ctx context.Context, now time.Time, entity string) ([]string, error) {
	t.clock.to(now)
	return t.Store.Resources(ctx, now, entity)
}

func (t *timed) Entities(ctx context.Context, now time.Time, resource string) ([]string, error) {
	t.clock.to(now)
	return t.Store.Entities(ctx, now, resource)
}

// emulatedOn opens a store on an emulator of its own, whose clock begins with the setup, or on
// something in front of it.
func emulatedOn(t conformance.T, s conformance.Setup, front func(yields) Ledger) *timed {
	t.Helper()
	clock := &worldClock{}
	clock.to(s.Start)
	ledger := front(yields{NewEmulator(&EmulatorOptions{Now: clock.now, Tick: time.Millisecond})})
	store, err := OpenLedger(t.Context(), ledger,
		&Options{Definitions: s.Definitions, Poll: -1, Now: clock.now})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return &timed{store, clock}
}

func harness() conformance.BackendHarness {
	return conformance.BackendHarness{
		Leeway: conformance.Leeway{
			WholeRest: true, Remembers: true, OwnClock: true, Estimates: true,
		},
		Open: func(t conformance.T, s conformance.Setup) weir.Backend {
			t.Helper()
			return emulatedOn(t, s, func(y yields) Ledger { return y })
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.TestBackend(t, harness())
}

// TestScripts plays reduced scripts that random operations have found.
func TestScripts(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a bucket regains more than a balance can hold": `
start 2026-04-04T14:59:56.423Z
set base
entity org
limits org _default_ huge=9223372036854775:bucket/3074457345618258/53m28s
run
advance 1580h26m55s
reserve 01KTP272BXPHJZDTMAE9NZQBX0 org/gpt huge=1
advance 32m51s
reserve 01KTP41ZWFP4AR04YCX7Q8GK3W org/gpt huge=9223372036854775
adjust 01KTP272BXPHJZDTMAE9NZQBX0 3 huge=9223372036854775
advance 66h10m12s
reserve 01KTX78WTQDRP365GBFHPQJ0QQ org/gpt huge=9223372036854775
`,
		"a refund of more than a balance can hold": `
start 2026-10-03T15:19:46.957Z
set base
entity org
limits org _default_ slow=5:bucket/1/15h23m21s
entity team parent org cascade
run
advance 1717h39m20s
reserve 01M9SER315A5WWS2TX7Z6K9NZB team/gpt slow=5
advance 15h23m15s
reserve 01M9V3JKPX07TPJT5CAXTA2DNR org/gpt slow=1
adjust 01M9V3JKPX07TPJT5CAXTA2DNR 1 slow=9223372036854775
cancel 01M9V3JKPX07TPJT5CAXTA2DNR
advance 1m3s
reserve 01M9V3MH7NFG73TBP5JQR4FEXK org/gpt slow=1
`,
		"an extend leaves buckets alone": `
start 2026-10-25T00:46:18.748Z
option lifetime 20s
option depth 3
set removed
entity org
limits org _default_ slow=5:bucket/1/3h20m38s
entity team parent org cascade
set added
entity org
limits org gpt slow=5:bucket/1/4h49m47s
entity team parent org cascade
run
advance 1707h47m5s
reserve 01MBFFM3MRRPNWZRZX9C56RN6H org/gpt slow=5
advance 3h29m12s
reserve 01MBFVJYYCKWWJS1CHBF26CQZ4 team/gpt slow=1
advance 3h20m25s
reserve 01MBG71Y3MQ4X69QZ5XBP63AXQ team/gpt slow=1
advance 6h39m19s
reserve 01MBGXX3JCR52X9ZSN61C89PG4 team/gpt slow=1
advance 15s
complete 01MBGXX3JCR52X9ZSN61C89PG4 slow=2
advance 3h28m32s
reserve 01MBH9VCZ4BS7TA43J8PPQC71M team/gpt slow=1
advance 3h5m57s
reserve 01MBHMFWFC7H3DNGNMDQ67VMR5 team/gpt slow=1
configure added
extend 01MBHMFWFC7H3DNGNMDQ67VMR5
advance 4m45s
reserve 01MBHMRJSMSGASNMJ8NTWR0MJD team/gpt slow=1
`,
		"a denial leaves a bucket forgotten": `
start 2026-11-01T04:59:55.425Z
option memory 10s
option depth 1
set base
entity bot parent team cascade
limits bot gpt slow=5:bucket/1/5h26m27s
entity team
limits team gpt eon=100:bucket/1/876000h0m0s
set raised
entity bot parent team cascade
limits bot gpt slow=7:bucket/1/5h26m27s
entity team
limits team gpt eon=100:bucket/1/876000h0m0s
run
advance 18h56m20s
reserve 01M6CRNZEHVSABEYSHQ6X3TKG7 team/gpt eon=75
advance 70h7m8s
reserve 01M6M9EAGH7HPHJ19FZAHXGXDE bot/gpt eon=1,slow=5
advance 73h32m43s
reserve 01M6W5YXKS30A0959N6JPD9MAV bot/gpt eon=30,slow=1
configure raised
status bot gpt
`,
		"a denial's wait goes by the definition in force": `
start 2026-09-06T03:59:56.45Z
option memory 10s
option depth 3
set base
resource gpt huge=9223372036854775:bucket/1537228672809129/56m0s
entity bot parent team cascade
entity org
entity team parent org cascade
set quicker
resource gpt huge=9223372036854775:bucket/3074457345618258/56m0s
entity bot parent team cascade
entity org
entity team parent org cascade
run
advance 2085h3m9s
reserve 01M8T4FE12NJF18AYQEMD25PZP bot/gpt huge=8449641889796657
configure quicker
reserve 01M8T4EC4JNNRDK9Y0PKAA47W2 bot/gpt huge=8449641889796657
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Replay(t, harness().Service(t), script)
		})
	}
}

// With the suite's own 4,000 these are 20,000 operations, each compared with the model's answer.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	h := harness()
	for seed := uint64(1); seed <= 8; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			conformance.RandomOperations(t, h.Service(t), seed, 2000)
		})
	}
}

// Beyond the plain run's seeds.
func TestSoakRandomOperations(t *testing.T) {
	soak.Only(t)
	t.Parallel()
	conformance.RandomOperations(t, harness().Service(t), 7, 200_000)
}
