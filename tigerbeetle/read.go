//go:build cgo

package tigerbeetle

import (
	"context"
	"math"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

const (
	filterDebits   = 1 << 0
	filterReversed = 1 << 2

	queryReversed = 1 << 0

	// maxReply is how many accounts or transfers an answer holds on every cluster.
	maxReply = 8189
	// maxPeriod is longer than any period of a budget: a month in which clocks change.
	maxPeriod = 33 * 24 * time.Hour
)

// readRounds bounds how often a bucket is read whose anchor moves during the read.
const readRounds = 3

// readLimit is readLimits for one limit.
func (s *Store) readLimit(ctx context.Context, state *limitState) error {
	return s.readLimits(ctx, []*limitState{state})
}

// readLimits reads from the cluster what is in use on limits: by one lookup for all, one query for
// the anchor of each bucket, and one for the periods of each budget.
//
// A balance is valid only with the anchor that it belongs to: with an older one, the refill between
// the two would count twice. So the accounts are read first and the anchor after them, and if the
// anchor may have moved in between, both are read again. The last round counts in any case: the
// estimate then lacks the refill of some milliseconds.
func (s *Store) readLimits(ctx context.Context, states []*limitState) error {
	all := make([]limitRead, len(states))
	for i, state := range states {
		all[i].limitState = state
	}
	return s.readAll(ctx, all)
}

// readForDenial is like readLimits, for a call that is about to deny. It also stores the answers in
// the takes' observed fields, so that each limit is judged as of one instant.
func (s *Store) readForDenial(ctx context.Context, takes []*activeTake) error {
	all := make([]limitRead, len(takes))
	for i, take := range takes {
		take.readInCall = true
		all[i].limitState, all[i].into = take.limitState, &take.observed
	}
	return s.readAll(ctx, all)
}

func (s *Store) readAll(ctx context.Context, all []limitRead) error {
	var reads []limitRead
	now := s.clock.nowMS()
	for _, l := range all {
		l.mu.Lock()
		l.limitState.readAt = now
		l.mu.Unlock()
		if l.key.kind != weir.Budget {
			reads = append(reads, l)
		} else if err := s.readBudget(ctx, l); err != nil {
			return err
		}
	}
	for range readRounds {
		var err error
		if reads, err = s.readAccounts(ctx, reads); err != nil || len(reads) == 0 {
			return err
		}
	}
	return nil
}

// limitRead is one read of a limit.
type limitRead struct {
	*limitState
	// anchorBefore and the fields below are the limit state's values from before the read.
	anchorBefore                anchor
	inFlightBefore, begunBefore int64
	addedBefore, returnedBefore int64
	// into is where to store the answer as well, if not nil.
	into **estimate
}

// before records the limit state's values before the cluster is asked.
func (l *limitRead) before() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.anchorBefore, l.inFlightBefore, l.begunBefore = l.bucket.anchor, l.inFlight, l.begun
	l.addedBefore, l.returnedBefore = l.added, l.returned
}

// overlapped reports whether chains were in flight during the read. l.mu is held.
func (l *limitRead) overlapped() bool { return l.inFlightBefore > 0 || l.begun != l.begunBefore }

// after records whether what was read is uncertain. l.mu is held.
func (l *limitRead) after(moved bool) { l.uncertain = moved || l.overlapped() }

// readAccounts reads once, and returns the buckets whose anchor may have moved during the read.
func (s *Store) readAccounts(ctx context.Context, reads []limitRead) ([]limitRead, error) {
	before := s.clock.nowMS()
	var ids []tb.Uint128
	for i := range reads {
		l := &reads[i]
		l.before()
		ids = append(ids, l.account)
		if l.key.kind == weir.Bucket {
			ids = append(ids, l.spent)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	accounts, err := s.accounts(ctx, ids)
	if err != nil {
		return nil, err
	}
	var again []limitRead
	for i := range reads {
		l := &reads[i]
		limit, spent := accounts[l.account], accounts[l.spent]
		if l.key.kind != weir.Bucket || limit == nil || spent == nil {
			if l.apply(s.clock.nowMS(), limit) {
				s.noteForeign()
			}
			continue
		}
		last, at, err := s.lastAnchor(ctx, l.limitState)
		if err != nil {
			return nil, err
		}
		// An anchor that was known before the lookup, or made before it, was in place when the
		// accounts were read.
		moved := last != nil && *last != l.anchorBefore && at >= before
		l.applyBucket(limit, spent, last, moved)
		if moved {
			again = append(again, *l)
		}
	}
	return again, nil
}

// accounts returns the accounts that exist among the IDs.
func (s *Store) accounts(ctx context.Context, ids []tb.Uint128) (map[tb.Uint128]*tb.Account, error) {
	accounts := make(map[tb.Uint128]*tb.Account, len(ids))
	for some := range slices.Chunk(ids, max(s.ledger.MaxEvents(), 1)) {
		found, err := s.ledger.LookupAccounts(ctx, some)
		if err != nil {
			return nil, client.Unavailable(err)
		}
		for i := range found {
			accounts[found[i].ID] = &found[i]
		}
	}
	return accounts, nil
}

// latestEnd returns when units that are in use now return at the latest. Units that an update took
// again may return up to a second late.
func (s *limitState) latestEnd(now int64) int64 {
	l := s.last.Load()
	if l == nil {
		return math.MaxInt64
	}
	return now + lengthOf(l).Milliseconds() + 1000
}

// apply updates the estimate by the account of a window or concurrency limit; a is nil if the
// account does not exist. It reports whether other servers have changed what is in use.
func (l *limitRead) apply(now int64, a *tb.Account) (elsewhere bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after(false)
	fresh := !l.accountsExist
	if l.accountsExist = a != nil && l.key.kind != weir.Bucket; !l.accountsExist {
		return false
	}
	l.funded = lowUint64(a.CreditsPosted) > 0
	l.expiring.expire(now)
	held := clampInt64(lowUint64(a.DebitsPending))
	if l.into != nil {
		*l.into = &estimate{expiring: expiringEstimate{others: held, until: l.latestEnd(now)}}
		if held == l.expiring.Total() { // the known ends are of the same units
			(*l.into).expiring = l.expiring.clone()
			(*l.into).expiring.others = 0
		}
	}
	// A chain in flight may have been carried out before the account was read, and a chain answered
	// since may have been carried out after. Together they explain a use between least and most;
	// only what is outside was done by other servers.
	known := l.expiring.Total() + l.expiring.others
	least := held - l.addingInFlight - (l.returned - l.returnedBefore)
	most := held + l.returningInFlight + (l.added - l.addedBefore)
	switch {
	case known > most:
		l.expiring.lower(known-most, l.latestEnd(now))
	case known < least:
		l.expiring.others, l.expiring.until = l.expiring.others+least-known, l.latestEnd(now)
	default:
		return false
	}
	return !fresh
}

// applyBucket updates the estimate by the accounts of a bucket and its latest anchor.
func (l *limitRead) applyBucket(limit, spent *tb.Account, last *anchor, moved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after(moved)
	l.accountsExist, l.funded = true, lowUint64(limit.CreditsPosted) > 0
	if last != nil {
		l.bucket.anchor = *last
		l.bucket.balance = balance(spent, last.rate.CapacityMilli)
	}
	if l.into != nil {
		*l.into = &estimate{bucket: l.bucket}
	}
}

// balance returns a bucket's balance, in milli-units, by its spent account. Servers that do not
// know of one another may together run up a debt that does not fit 64 bits; the result is then the
// lowest balance that does.
func balance(spent *tb.Account, capacityMilli int64) int64 {
	out := uint128.Of(spent.CreditsPosted).Minus(uint128.Of(spent.DebitsPosted))
	full := uint64(capacityMilli)
	if out.Hi > 0 || out.Lo > full+1<<63 {
		return math.MinInt64
	}
	return int64(full - out.Lo)
}

func clampInt64(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// lastAnchor returns the latest anchor of a bucket and when it was made, in Unix milliseconds, or
// nil.
func (s *Store) lastAnchor(ctx context.Context, state *limitState) (last *anchor, at int64, err error) {
	t, err := s.lastDebit(ctx, state.spent, codeRefill)
	if err != nil || t == nil {
		return nil, 0, err // a bucket that was never used has no anchor
	}
	a := readAnchor(t)
	return &a, timestampMS(t.Timestamp), nil
}

// lastDebit returns the latest transfer with a code that debits an account, or nil.
func (s *Store) lastDebit(ctx context.Context, account tb.Uint128, code uint16) (*tb.Transfer, error) {
	found, err := s.ledger.AccountTransfers(ctx, tb.AccountFilter{
		AccountID: account, Code: code, Limit: 1, Flags: filterDebits | filterReversed,
	})
	if err != nil {
		return nil, client.Unavailable(err)
	}
	if len(found) == 0 {
		return nil, nil // there is none
	}
	return &found[0], nil
}

// readBudget reads the periods of a budget that have not ended.
func (s *Store) readBudget(ctx context.Context, l limitRead) error {
	state := l.limitState
	l.before()
	accounts, since, err := s.periodsOf(ctx, state)
	if err != nil {
		return err
	}
	now := s.clock.nowMS()
	state.mu.Lock()
	defer state.mu.Unlock()
	l.after(false)
	state.since = max(state.since, since)
	state.periods = state.periods[:0]
	for i := range accounts {
		a := &accounts[i]
		if end := periodEnd(a); end > now {
			state.periods = append(state.periods, periodAccount{
				account: a.ID, end: end, used: usedOf(a), accountExists: true, funded: lowUint64(a.CreditsPosted) > 0,
			})
		}
	}
	state.accountsExist = true
	if l.into != nil {
		*l.into = &estimate{periods: slices.Clone(state.periods)}
	}
	return nil
}

// periodEnd returns when the period of a budget's account ends, in Unix milliseconds.
func periodEnd(a *tb.Account) int64 { return int64(a.UserData32) * 1000 }

// periodsOf returns the accounts of a budget's periods, of any calendar, including all that have
// not ended. since is the timestamp from which the next read has to look: accounts made before it
// have ended.
func (s *Store) periodsOf(ctx context.Context, state *limitState) (accounts []tb.Account, since uint64, err error) {
	if state.key.Entity == "" {
		accounts, err := s.ledger.LookupAccounts(ctx, []tb.Uint128{state.account})
		if err != nil {
			return nil, 0, client.Unavailable(err)
		}
		return accounts, 0, nil
	}
	now := s.clock.nowMS()
	// An account is created during its own period.
	filter := tb.QueryFilter{
		UserData128: s.namespace.subjectHash(state.key.Subject), UserData64: nameHash(state.key.name),
		Ledger: s.namespace.ledger, Code: codeBudget, Limit: maxReply, Flags: queryReversed,
		TimestampMin: max(s.states.since(state.key), timestampOf(now-maxPeriod.Milliseconds())),
	}
	for {
		found, err := s.ledger.QueryAccounts(ctx, filter)
		if err != nil {
			return nil, 0, client.Unavailable(err)
		}
		accounts = append(accounts, found...)
		if len(found) < maxReply {
			break
		}
		filter.TimestampMax = found[len(found)-1].Timestamp - 1
	}
	since = timestampOf(now)
	for i := range accounts {
		if periodEnd(&accounts[i]) > now {
			since = min(since, accounts[i].Timestamp)
		}
	}
	return accounts, since, nil
}

// timestampOf returns the cluster's timestamp of a millisecond.
func timestampOf(ms int64) uint64 { return uint64(max(ms, 0)) * uint64(time.Millisecond) }

// usedOf returns the units in use of an account that is funded in units.
func usedOf(a *tb.Account) int64 {
	credits, debits := uint128.Of(a.CreditsPosted), uint128.Of(a.DebitsPosted)
	fund := uint128.Number{Lo: fundUnits}
	if fund.GreaterThan(credits) {
		return 0
	}
	return clampInt64(debits.Minus(credits.Minus(fund)).Lo)
}

// readExpiring reads the ends of expiring units, if a retry-after needs them and they are not
// known. It reads as many transfers as one call returns; if there are more, the retry-after is a
// lower bound.
func (s *Store) readExpiring(ctx context.Context, now int64, take *activeTake) error {
	if k := take.key.kind; k != weir.Window && k != weir.Concurrency {
		return nil
	}
	take.mu.Lock()
	_, bound := take.judgedBy().freeAt(take.key.kind, now, take.need(), take.Limit.Capacity)
	take.mu.Unlock()
	if !bound {
		return nil
	}
	asked := limitRead{limitState: take.limitState}
	asked.before()
	most := uint32(s.ledger.MaxEvents())
	found, err := s.ledger.AccountTransfers(ctx, tb.AccountFilter{
		AccountID: take.account, Limit: most, Flags: filterDebits | filterReversed,
	})
	if err != nil {
		return client.Unavailable(err)
	}
	take.mu.Lock()
	defer take.mu.Unlock()
	before := &take.judgedBy().expiring
	held := before.Total() + before.others
	holds := expiringOf(found, now)
	if len(found) == int(most) {
		holds.others, holds.until = max(held-holds.Total(), 0), take.latestEnd(now)
	}
	take.observed = &estimate{expiring: holds}
	if back := take.returned - asked.returnedBefore; back > 0 { // returned by this server, and perhaps not in the answer
		take.observed.expiring.lower(min(back, holds.Total()+holds.others), take.latestEnd(now))
	}
	if !asked.overlapped() { // otherwise keep the estimate, which has what the chains did
		take.expiring = holds.clone()
	}
	return nil
}

// expiringOf returns the units of an account's transfers, newest first, that end after now.
func expiringOf(found []tb.Transfer, now int64) expiringEstimate {
	var h expiringEstimate
	resolved := make(map[tb.Uint128]bool)
	for i := range found {
		t := &found[i]
		if t.Flags&(flagVoid|flagPost) != 0 {
			resolved[t.PendingID] = true
			continue
		}
		if t.Flags&flagPending == 0 || t.Timeout == 0 || resolved[t.ID] {
			continue
		}
		if until := timestampMS(t.Timestamp) + timeoutMS(t); until > now {
			h.Add(until, clampInt64(lowUint64(t.Amount)))
		}
	}
	return h
}
