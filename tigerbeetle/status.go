//go:build cgo

package tigerbeetle

import (
	"context"
	"math"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// Status returns the statuses of limits as they are on the cluster. All accounts that one lookup
// returns are from one instant. It creates nothing.
func (s *Store) Status(
	ctx context.Context, _ time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.exit()
	var targets []statusTarget
	for i := range of {
		for j := range of[i].Limits {
			targets = append(targets, statusTarget{level: of[i].Level, limit: &of[i].Limits[j]})
			if err := s.accountsFor(ctx, &targets[len(targets)-1], of[i].Subject); err != nil {
				return nil, err
			}
		}
	}
	return s.readStatus(ctx, targets)
}

// statusTarget is a limit to report.
type statusTarget struct {
	level weir.Level
	limit *weir.Limit
	state *limitState
	// ids are the accounts to read.
	ids []tb.Uint128
}

// accountsFor sets the accounts of a limit.
func (s *Store) accountsFor(ctx context.Context, v *statusTarget, subject weir.Subject) error {
	v.state = &limitState{key: limitKey{subject, v.limit.Name, v.limit.Kind}}
	v.state.setAccounts(&s.namespace)
	switch v.limit.Kind {
	case weir.Bucket:
		v.ids = []tb.Uint128{v.state.spent}
		return nil
	case weir.Budget:
		accounts, _, err := s.periodsOf(ctx, v.state)
		if err != nil {
			return err
		}
		now := s.clock.nowMS()
		from, to := v.limit.Period(time.UnixMilli(now)) // its account may be created after the query
		if s.clock.latestMS() >= to.UnixMilli() {
			if err := s.askTime(ctx); err != nil {
				return err
			}
			now = s.clock.nowMS()
			from, to = v.limit.Period(time.UnixMilli(now))
		}
		v.ids = []tb.Uint128{v.state.periodAccountID(from.UnixMilli(), to.UnixMilli())}
		for i := range accounts {
			end := periodEnd(&accounts[i])
			if id := accounts[i].ID; end > now && id != v.ids[0] {
				v.ids = append(v.ids, id)
			}
		}
		return nil
	}
	v.ids = []tb.Uint128{v.state.account}
	return nil
}

// statusRounds bounds how often the cluster is read for one status if buckets' anchors move during
// the read.
const statusRounds = 4

// readStatus reads all accounts together, and then the buckets' anchors. A balance is valid only
// with the anchor that it belongs to: with an older one, what the bucket has regained would count
// twice. So it reads again if an anchor may be newer than its account. If anchors move each time,
// the last read counts: it may lack what a bucket regains during one call.
func (s *Store) readStatus(ctx context.Context, targets []statusTarget) ([]weir.LimitStatus, error) {
	var ids []tb.Uint128
	for i := range targets {
		ids = append(ids, targets[i].ids...)
	}
	var accounts map[tb.Uint128]*tb.Account
	for range statusRounds {
		before := s.clock.nowMS()
		var err error
		if accounts, err = s.accounts(ctx, ids); err != nil {
			return nil, err
		}
		settled := true
		for i := range targets {
			same, err := s.anchored(ctx, &targets[i], accounts, before)
			if err != nil {
				return nil, err
			}
			settled = settled && same
		}
		if settled {
			break
		}
	}
	out := make([]weir.LimitStatus, len(targets))
	now, superseded := s.clock.nowMS(), s.version.check() != nil
	for i := range targets {
		v := &targets[i]
		l := v.limit
		out[i] = weir.LimitStatus{
			Entity: v.state.key.Entity, Resource: v.state.key.Resource, Limit: l.Name, Kind: l.Kind,
			Level: v.level, Capacity: l.Capacity, Available: s.availableOn(now, v, accounts), Shadow: l.Shadow,
			Superseded: superseded,
		}
	}
	return out, nil
}

// anchored reads a bucket's anchor after its account, and reports whether the account was read with
// that anchor in place: the anchor was made before the lookup, by the cluster's time, or the round
// before found it too.
func (s *Store) anchored(
	ctx context.Context, v *statusTarget, accounts map[tb.Uint128]*tb.Account, before int64,
) (bool, error) {
	if v.limit.Kind != weir.Bucket || accounts[v.state.spent] == nil {
		return true, nil
	}
	last, at, err := s.lastAnchor(ctx, v.state)
	if err != nil || last == nil {
		return true, err // nothing was taken yet
	}
	same := *last == v.state.bucket.anchor || at < before
	v.state.bucket.anchor = *last
	return same, nil
}

// availableOn returns the units that a limit has available.
func (s *Store) availableOn(now int64, v *statusTarget, accounts map[tb.Uint128]*tb.Account) int64 {
	capacity := v.limit.Capacity
	var used uint64
	for _, id := range v.ids {
		a := accounts[id]
		switch {
		case a == nil:
		case v.limit.Kind == weir.Bucket:
			return s.availableInBucket(now, v, a)
		case v.limit.Kind == weir.Budget:
			used = min(used+uint64(usedOf(a)), math.MaxInt64)
		default:
			used = uint64(clampInt64(lowUint64(a.DebitsPending)))
		}
	}
	return capacity - int64(used)
}

// availableInBucket returns the units that a bucket has available under the definition that the
// next call would give it.
func (s *Store) availableInBucket(now int64, v *statusTarget, spent *tb.Account) int64 {
	k := &v.state.bucket
	if k.anchor.b == 0 {
		return v.limit.Capacity
	}
	k.balance = balance(spent, k.anchor.rate.CapacityMilli)
	if k.forgotten(now, s.states.touched(v.state.key)) {
		return v.limit.Capacity
	}
	return kernel.Units(min(k.balanceAt(now), v.limit.Capacity*1000))
}
