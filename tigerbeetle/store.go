//go:build cgo

package tigerbeetle

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// Store is a [driver.Store] on a [Ledger]. Its methods may be called concurrently.
type Store struct {
	ledger    Ledger
	namespace namespace
	options   Options
	clock     *clusterClock
	states    limitStates
	config    atomic.Pointer[weir.Definitions]
	version   version
	// fresh is set if this store created the namespace.
	fresh bool
	// rememberFor is how long a denial is remembered at most, in milliseconds.
	rememberFor int64
	counts      counts
	// replayLimits maps the ID of a lease whose reservation was repeated to the statuses of its
	// limits, until the engine recovers the lease.
	replayLimits sync.Map
	// chains holds chains whose calls have returned, for reuse.
	chains sync.Pool
	// foreignSeenAt is when this store last saw a sign of another server, in the cluster's
	// milliseconds.
	foreignSeenAt atomic.Int64
	// foreignFor is how long such a sign counts, in milliseconds.
	foreignFor int64
	// abandoned holds the reservations whose callers have left.
	abandoned abandoned
	// usage sums what was used until it is written, and audit has the changes of the configuration.
	usage usageLog
	audit configAudit
	// life is the context of withdrawals. Close cancels it, by calling end, after it has given them
	// time to finish.
	life context.Context //nolint:containedctx // It is the store's own, of no call.
	end  context.CancelFunc

	// calls counts the calls in progress. enter adds to it with mu locked and not after closed is
	// set, so that Close can wait for it.
	calls  sync.WaitGroup
	mu     sync.Mutex
	closed bool
	stop   chan struct{}
	poller sync.WaitGroup
}

// OpenLedger opens a store on a ledger, which [Store.Close] closes. It fails with
// [weir.Unavailable] if the ledger does not answer before the context ends, and with [weir.Invalid]
// if the namespace's ledger holds accounts that weir did not create.
func OpenLedger(ctx context.Context, ledger Ledger, o *Options) (*Store, error) {
	s := &Store{stop: make(chan struct{}), rememberFor: rememberMS, foreignFor: foreignMS}
	if o != nil {
		s.options = *o
	}
	if s.options.Namespace == "" {
		s.options.Namespace = "default"
	}
	if s.options.Poll == 0 {
		s.options.Poll = time.Second
	}
	if s.options.Now == nil {
		s.options.Now = time.Now
	}
	if s.options.OnError == nil {
		s.options.OnError = func(error) {}
	}
	d := s.options.Definitions
	if d == nil {
		d = &weir.Definitions{}
	}
	normal, err := d.Normalize()
	if err != nil {
		return nil, err
	}
	s.config.Store(normal)
	s.namespace = newNamespace(s.options.Namespace)
	s.clock = newClock(s.options.Now, ledger)
	s.ledger = clockLedger{countingLedger{ledger, &s.counts}, s.clock}
	s.states.byKey, s.states.byName = make(map[limitKey]*limitState), make(map[accountName]*limitState)
	s.abandoned.byLease = make(map[weir.LeaseID]*inflightReserve)
	s.abandoned.permits = make(chan struct{}, maxWithdrawals)
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.initNamespace(ctx); err != nil {
		return nil, err
	}
	s.startUsage(ctx)
	if s.options.Poll > 0 {
		s.poller.Add(1)
		go s.poll() //nolint:gosec,contextcheck // It lasts as long as the store, and Close ends it.
	}
	return s, nil
}

// initNamespace creates the namespace's accounts if needed, and puts the store's definitions in
// force unless newer ones are.
func (s *Store) initNamespace(ctx context.Context) error {
	if err := s.checkLedger(ctx); err != nil {
		return err
	}
	n := &s.namespace
	accounts := []tb.Account{
		{ID: n.vault, Ledger: n.ledger, Code: codeVault},
		{ID: n.register, Ledger: n.ledger, Code: codeRegister},
		{ID: n.usage, Ledger: n.ledger, Code: codeUsageAccount},
	}
	if s.options.ReadOnly {
		accounts = nil
	}
	// The result for an account that exists has the time at which that account was created. The
	// extra account has no ID, so the cluster refuses it, with its current time (see clockLedger).
	results, err := s.ledger.CreateAccounts(ctx, append(accounts, tb.Account{}))
	if err != nil {
		return client.Unavailable(err)
	}
	if len(results) != len(accounts)+1 {
		return unexpected("create_accounts", "too few results")
	}
	for i := range accounts {
		s.fresh = s.fresh || results[i].Status == tb.AccountCreated && i == 0
		if st := results[i].Status; st != tb.AccountCreated && st != tb.AccountExists {
			return unexpected("create_accounts", st.String())
		}
	}
	if !s.fresh { // another server may use the namespace
		s.noteForeign()
	}
	return s.version.start(ctx, s)
}

// checkLedger refuses a ledger whose first account is not the namespace's vault.
func (s *Store) checkLedger(ctx context.Context) error {
	first, err := s.ledger.QueryAccounts(ctx, tb.QueryFilter{Ledger: s.namespace.ledger, Limit: 1})
	if err != nil {
		return client.Unavailable(err)
	}
	if len(first) == 1 && first[0].ID != s.namespace.vault {
		return &weir.Error{
			Code: weir.Invalid, Field: "store.namespace", Value: s.namespace.name,
			Reason: "has a ledger on this cluster that weir did not make: use another namespace or cluster",
		}
	}
	return nil
}

// Traits returns what the store supports: every kind of limit, and cascades of eight ancestors.
// Units that an adjust kept or added return up to a second late, because TigerBeetle counts
// timeouts in whole seconds, and the cluster needs some milliseconds to return expired units.
func (s *Store) Traits() driver.Traits {
	return driver.Traits{
		Kinds:        []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget},
		CascadeDepth: 8,
		ExpiryLate:   time.Second,
	}
}

// ClockOffset returns how far the cluster's clock is ahead of the process's clock, or 0 if the two
// differ by 100 ms or less.
func (s *Store) ClockOffset() time.Duration {
	if d := s.clock.ahead(); d.Abs() > 100*time.Millisecond {
		return d.Truncate(time.Millisecond)
	}
	return 0
}

// enter begins a call; Close waits for its exit. It refuses all calls after Close, and writes if
// the store was opened for reading only.
func (s *Store) enter(writes bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &weir.Error{Code: weir.Unavailable, Reason: "the store is closed"}
	}
	if writes && s.options.ReadOnly {
		return readOnly()
	}
	s.calls.Add(1)
	return nil
}

func (s *Store) exit() { s.calls.Done() }

// Close waits for the calls in progress, gives the withdrawals of abandoned reservations one second
// to finish, writes the usage that is not written yet, for at most another second, and closes the
// ledger. A chain without an answer at that time may still be carried out; its units stay charged
// until the lease ends.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.stop)
	s.mu.Unlock()
	s.usage.end()
	s.calls.Wait()
	s.poller.Wait()
	s.closeWrites()
	return s.ledger.Close()
}

// maxEvents returns how many events a chain may have: no more than one call holds, and no more than
// the index in a mark can number.
func (s *Store) maxEvents() int { return min(s.ledger.MaxEvents(), 1<<markBits-1) }

// fits returns an error if a chain does not fit one call.
func (s *Store) fits(ch *chain) error {
	if most := s.maxEvents(); len(ch.transfers) > most {
		return client.TooLarge(len(ch.transfers), most)
	}
	return nil
}

// checkFits refuses a reservation whose chain might not fit one call, before any account is created
// for it. It counts the most events that [reserveOp.buildChain] may add, including the funding and
// the anchor of every take, so the answer does not depend on which server funds the accounts or
// moves the anchors.
func (s *Store) checkFits(takes []*activeTake, keys []uint64) error {
	events := 1 + len(keys) // the header, and a record of each key
	for _, t := range takes {
		switch t.Limit.Kind {
		case weir.Bucket:
			events += 5 // fund, refill, change of capacity, check, post
		case weir.Budget:
			events += 3 // fund, check, post
		default:
			events += 4 // fund, check, void, take
		}
		if len(t.Parts) > 1 {
			events += len(t.Parts)
		}
	}
	if most := s.maxEvents(); events > most {
		return client.TooLarge(events, most)
	}
	return nil
}

// carryOut sends a chain and returns its result.
func (s *Store) carryOut(ctx context.Context, ch *chain) (chainResult, error) {
	results, err := s.send(ctx, ch)
	if err != nil {
		return chainResult{}, err
	}
	v := ch.result(results)
	s.recycle(ch)
	return v, nil
}

// send sends a chain and returns the results of its events. It clears the linked flag of the last
// event, because TigerBeetle refuses a chain that does not end within its call.
func (s *Store) send(ctx context.Context, ch *chain) ([]tb.CreateTransferResult, error) {
	ch.transfers[len(ch.transfers)-1].Flags &^= flagLinked
	results, err := s.ledger.CreateTransfers(ctx, ch.transfers)
	if err != nil {
		return nil, client.Unavailable(err)
	}
	if len(results) != len(ch.transfers) {
		return nil, unexpected("create_transfers", "too few results")
	}
	return results, nil
}
