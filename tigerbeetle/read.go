//go:build cgo

package tigerbeetle

import (
	"context"
	"math"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

const (
	filterDebits   = 1 << 0
	filterReversed = 1 << 2

	queryReversed = 1 << 0
	// longestPeriod is longer than any period of a budget: a month in which clocks change.
	longestPeriod = 33 * 24 * time.Hour
)

// readRounds is how often a bucket is read at most whose anchor moves meanwhile.
const readRounds = 3

// readSpot is readSpots of one.
func (s *Store) readSpot(ctx context.Context, sp *spot) error {
	return s.readSpots(ctx, []*spot{sp})
}

// readSpots asks the cluster what is in use on limits: by one look-up for all, one query for the
// anchor of each bucket that is there, and one for the periods of each budget.
//
// A balance means something beside the anchor that it belongs to alone: beside an older one the
// refill between the two would count twice. So the accounts are read first and the anchor after
// them, and where it may have moved in between, both are read again. The last round is taken as it
// is: what is known then lacks the refill of some milliseconds.
func (s *Store) readSpots(ctx context.Context, spots []*spot) error {
	all := make([]look, len(spots))
	for i, sp := range spots {
		all[i].spot = sp
	}
	return s.read(ctx, all)
}

// observe is readSpots for a call that is to be denied: the limits of its seats are judged by
// what the cluster says, as of one instant.
func (s *Store) observe(ctx context.Context, seats []*seat) error {
	all := make([]look, len(seats))
	for i, seat := range seats {
		seat.asked = true
		all[i].spot, all[i].into = seat.spot, &seat.seen
	}
	return s.read(ctx, all)
}

func (s *Store) read(ctx context.Context, all []look) error {
	var looks []look
	now := s.clock.ms()
	for _, l := range all {
		l.mu.Lock()
		l.spot.read = now
		l.mu.Unlock()
		if l.key.kind != weir.Budget {
			looks = append(looks, l)
		} else if err := s.readBudget(ctx, l); err != nil {
			return err
		}
	}
	for range readRounds {
		var err error
		if looks, err = s.readAccounts(ctx, looks); err != nil || len(looks) == 0 {
			return err
		}
	}
	return nil
}

// look is one look at a limit.
type look struct {
	*spot
	// known is the anchor that the bucket had before, flown and was are flights and begun of
	// then, added and let the sums.
	known            anchor
	flown, was       int64
	addedWas, letWas int64
	// into is where the answer is put, beside what is known; nil for nowhere.
	into **estimate
}

// begin notes what is known before the cluster is asked.
func (l *look) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.flown, l.was = l.bucket.anchor, l.flights, l.begun
	l.addedWas, l.letWas = l.added, l.let
}

// crossed is true where chains were on their way meanwhile. The spot is locked.
func (l *look) crossed() bool { return l.flown > 0 || l.begun != l.was }

// end notes whether what was read can be counted on. The spot is locked.
func (l *look) end(moved bool) { l.doubt = moved || l.crossed() }

// readAccounts asks once, and returns the buckets whose anchor may have moved meanwhile.
func (s *Store) readAccounts(ctx context.Context, looks []look) ([]look, error) {
	before := s.clock.ms()
	var ids []tb.Uint128
	for i := range looks {
		l := &looks[i]
		l.begin()
		ids = append(ids, l.limit)
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
	var again []look
	for i := range looks {
		l := &looks[i]
		limit, spent := accounts[l.limit], accounts[l.spent]
		if l.key.kind != weir.Bucket || limit == nil || spent == nil {
			if l.tell(s.clock.ms(), limit) {
				s.shares()
			}
			continue
		}
		last, at, err := s.lastAnchor(ctx, l.spot)
		if err != nil {
			return nil, err
		}
		// One that was known, or made, before the accounts were read was there when they were.
		moved := last != nil && *last != l.known && at >= before
		l.tellBucket(limit, spent, last, moved)
		if moved {
			again = append(again, *l)
		}
	}
	return again, nil
}

// accounts are those of the IDs that exist.
func (s *Store) accounts(ctx context.Context, ids []tb.Uint128) (map[tb.Uint128]*tb.Account, error) {
	accounts := make(map[tb.Uint128]*tb.Account, len(ids))
	for some := range slices.Chunk(ids, max(s.ledger.MaxEvents(), 1)) {
		found, err := s.ledger.LookupAccounts(ctx, some)
		if err != nil {
			return nil, unavailable(err)
		}
		for i := range found {
			accounts[found[i].ID] = &found[i]
		}
	}
	return accounts, nil
}

// latest is when what is held now ends at the latest: a hold that was made anew, up to a second
// late.
func (s *spot) latest(now int64) int64 {
	l := s.last.Load()
	if l == nil {
		return math.MaxInt64
	}
	return now + lengthOf(l).Milliseconds() + 1000
}

// tell takes in what the account of a window or of slots says, or that a limit has none. It
// reports whether other servers have changed what is in use.
func (l *look) tell(now int64, a *tb.Account) (elsewhere bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(false)
	fresh := !l.ready
	if l.ready = a != nil && l.key.kind != weir.Bucket; !l.ready {
		return false
	}
	l.funded = low(a.CreditsPosted) > 0
	l.holds.expire(now)
	held := clamp(low(a.DebitsPending))
	if l.into != nil {
		*l.into = &estimate{holds: holdsKnown{others: held, until: l.latest(now)}}
		if held == l.holds.Total() { // then the ends are those that are known
			(*l.into).holds = l.holds.clone()
			(*l.into).holds.others = 0
		}
	}
	// A chain on its way may have been carried out before the account was read, and one that has come
	// back since may have been after. Only what they do not account for is others' doing.
	known := l.holds.Total() + l.holds.others
	least := held - l.adding - (l.let - l.letWas)
	most := held + l.letting + (l.added - l.addedWas)
	switch {
	case known > most:
		l.holds.fewer(known-most, l.latest(now))
	case known < least:
		l.holds.others, l.holds.until = l.holds.others+least-known, l.latest(now)
	default:
		return false
	}
	return !fresh
}

// tellBucket takes in what the accounts of a bucket say, beside its latest anchor.
func (l *look) tellBucket(limit, spent *tb.Account, last *anchor, moved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(moved)
	l.ready, l.funded = true, low(limit.CreditsPosted) > 0
	if last != nil {
		l.bucket.anchor = *last
		l.bucket.balance = balance(spent, last.rate.CapacityMilli)
	}
	if l.into != nil {
		*l.into = &estimate{bucket: l.bucket}
	}
}

// balance is that of a bucket, in milli-units, by the account of what is spent. Servers that know
// nothing of one another may together run up a debt that 64 bits do not hold: then it is the
// greatest that they do.
func balance(spent *tb.Account, capacityMilli int64) int64 {
	out := number128(spent.CreditsPosted).less(number128(spent.DebitsPosted))
	full := uint64(capacityMilli)
	if out.hi > 0 || out.lo > full+1<<63 {
		return math.MinInt64
	}
	return int64(full - out.lo)
}

func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// lastAnchor is the latest anchor of a bucket and when it was made, in Unix milliseconds, or nil.
func (s *Store) lastAnchor(ctx context.Context, sp *spot) (last *anchor, at int64, err error) {
	found, err := s.ledger.AccountTransfers(ctx, tb.AccountFilter{
		AccountID: sp.spent, Code: codeRefill, Limit: 1, Flags: filterDebits | filterReversed,
	})
	if err != nil {
		return nil, 0, unavailable(err)
	}
	if len(found) == 0 {
		return nil, 0, nil // a bucket that was never used has no anchor
	}
	a := readAnchor(&found[0])
	return &a, instant(found[0].Timestamp), nil
}

// readBudget asks for the periods of a budget that have not ended.
func (s *Store) readBudget(ctx context.Context, l look) error {
	sp := l.spot
	l.begin()
	accounts, since, err := s.periodsOf(ctx, sp)
	if err != nil {
		return err
	}
	now := s.clock.ms()
	sp.mu.Lock()
	defer sp.mu.Unlock()
	l.end(false)
	sp.since = max(sp.since, since)
	sp.periods = sp.periods[:0]
	for i := range accounts {
		a := &accounts[i]
		if end := periodEnd(a); end > now {
			sp.periods = append(sp.periods, period{
				account: a.ID, end: end, used: usedOf(a), ready: true, funded: low(a.CreditsPosted) > 0,
			})
		}
	}
	sp.ready = true
	if l.into != nil {
		*l.into = &estimate{periods: slices.Clone(sp.periods)}
	}
	return nil
}

// periodEnd is when the period of a budget's account ends, in Unix milliseconds.
func periodEnd(a *tb.Account) int64 { return int64(a.UserData32) * 1000 }

// periodsOf are the accounts of a budget's periods, all that have not ended among them, of whatever
// calendar, and since when accounts have to be looked at next time: those that were made before
// have ended.
func (s *Store) periodsOf(ctx context.Context, sp *spot) (accounts []tb.Account, since uint64, err error) {
	if sp.key.Entity == "" {
		accounts, err := s.ledger.LookupAccounts(ctx, []tb.Uint128{sp.limit})
		if err != nil {
			return nil, 0, unavailable(err)
		}
		return accounts, 0, nil
	}
	now := s.clock.ms()
	// An account is made in its own period.
	filter := tb.QueryFilter{
		UserData128: s.namespace.subjectHash(sp.key.Subject), UserData64: nameHash(sp.key.name),
		Ledger: s.namespace.ledger, Code: codeBudget, Limit: maxReply, Flags: queryReversed,
		TimestampMin: max(s.spots.since(sp.key), timestampOf(now-longestPeriod.Milliseconds())),
	}
	for {
		found, err := s.ledger.QueryAccounts(ctx, filter)
		if err != nil {
			return nil, 0, unavailable(err)
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

// timestampOf is an instant as the cluster counts it.
func timestampOf(ms int64) uint64 { return uint64(max(ms, 0)) * uint64(time.Millisecond) }

// usedOf is what is in use on an account that was funded with units.
func usedOf(a *tb.Account) int64 {
	credits, debits := number128(a.CreditsPosted), number128(a.DebitsPosted)
	fund := wideNumber{lo: fundUnits}
	if fund.above(credits) {
		return 0
	}
	return clamp(debits.less(credits.less(fund)).lo)
}

// readHolds asks for the ends of holds, if a retry-after needs them and they are not known. One
// query gets as many transfers as a call has; if that is not enough, the retry-after is a bound.
func (s *Store) readHolds(ctx context.Context, now int64, seat *seat) error {
	if k := seat.key.kind; k != weir.Window && k != weir.Concurrency {
		return nil
	}
	seat.mu.Lock()
	_, bound := seat.view().freeAt(seat.key.kind, now, seat.need(), seat.take.Limit.Capacity)
	seat.mu.Unlock()
	if !bound {
		return nil
	}
	asked := look{spot: seat.spot}
	asked.begin()
	most := uint32(s.ledger.MaxEvents())
	found, err := s.ledger.AccountTransfers(ctx, tb.AccountFilter{
		AccountID: seat.limit, Limit: most, Flags: filterDebits | filterReversed,
	})
	if err != nil {
		return unavailable(err)
	}
	seat.mu.Lock()
	defer seat.mu.Unlock()
	before := &seat.view().holds
	held := before.Total() + before.others
	holds := holdsOf(found, now)
	if len(found) == int(most) {
		holds.others, holds.until = max(held-holds.Total(), 0), seat.latest(now)
	}
	seat.seen = &estimate{holds: holds}
	if back := seat.let - asked.letWas; back > 0 { // by this server, and perhaps not in the answer
		seat.seen.holds.fewer(min(back, holds.Total()+holds.others), seat.latest(now))
	}
	if !asked.crossed() { // otherwise what chains did meanwhile is booked in what is known
		seat.holds = holds.clone()
	}
	return nil
}

// holdsOf are the holds that have not ended among an account's transfers, the newest first.
func holdsOf(found []tb.Transfer, now int64) holdsKnown {
	var h holdsKnown
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
		if until := instant(t.Timestamp) + lasts(t); until > now {
			h.Add(until, clamp(low(t.Amount)))
		}
	}
	return h
}
