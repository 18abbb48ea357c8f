//go:build cgo

package tigerbeetle

import (
	"encoding/hex"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// limitState is what a server knows of one limit of one subject. It is an estimate, for statuses
// and to deny without asking; only the cluster decides.
type limitState struct {
	key limitKey
	// account is the limit's account, for a budget nil: its accounts are those of its periods.
	// spent is the other account of a bucket.
	account, spent tb.Uint128
	hash           [32]byte
	// last is the definition that a reservation found last.
	last atomic.Pointer[weir.Limit]

	mu sync.Mutex
	// accountsExist is set once the accounts are known to exist and the use was read.
	accountsExist bool
	// funded is set once the account is known to be funded.
	funded bool
	// usedAtMS is when it was used last, in the cluster's milliseconds. touched is the same for
	// what it is forgotten by: a denial does not bring back a bucket that had been full for long
	// before.
	usedAtMS, touched int64

	// readAt is when the cluster was asked last, in its milliseconds.
	readAt int64
	// inFlight is how many chains of this process that change the limit are in flight, begun how
	// many were ever sent, and updatesInFlight how many of those in flight are updates, which may
	// give units back.
	inFlight, begun, updatesInFlight int64
	// uncertain is set if the limit was read while chains were in flight, or the answer to one was
	// lost: what they did may be counted twice, or not at all.
	uncertain bool

	// addingInFlight and returningInFlight are the units that chains in flight may take or give
	// back; added and returned are the sums of what chains have taken and given back.
	addingInFlight, returningInFlight, added, returned int64

	estimate
	// since is a timestamp: accounts of a budget that were made before are of periods that have
	// ended.
	since uint64

	denied rememberedDenial
}

// rememberedDenial is what was denied last, so that it need not be denied by the cluster again and
// again.
type rememberedDenial struct {
	// need is what had to be free, in units below the capacity, until when it is remembered.
	need  int64
	until int64
}

// unnamedSubject is the subject of a limit whose names this server does not know: its account's
// number.
func unnamedSubject(account tb.Uint128) weir.Subject {
	b := account.Bytes()
	return weir.Subject{Resource: hex.EncodeToString(b[:])}
}

// limitStates are those that are known. Those that were not used for long are forgotten when
// another one is looked up.
type limitStates struct {
	mu    sync.Mutex
	byKey map[limitKey]*limitState
	// byName finds them by what stands on their accounts.
	byName map[accountName]*limitState
	// sweptAt is when the idle ones were looked for last.
	sweptAt int64
}

// accountName is what an account says of the limit that it belongs to.
type accountName struct {
	subject tb.Uint128
	name    uint64
	kind    weir.Kind
}

// nameOf is what a limit's accounts say.
func (n *namespace) nameOf(k limitKey) accountName {
	return accountName{n.subjectHash(k.Subject), nameHash(k.name), k.kind}
}

// lookup returns the state of a limit, or nil.
func (s *limitStates) lookup(k limitKey) *limitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[k]
}

// valueOf reads a field of a limit state under its lock; of nil it is zero.
func valueOf[T any](state *limitState, field func(*limitState) T) (value T) {
	if state == nil {
		return value
	}
	state.mu.Lock()
	defer state.mu.Unlock()
	return field(state)
}

// touched is when a limit was last asked while it was remembered, as far as this server knows.
func (s *limitStates) touched(k limitKey) int64 {
	return valueOf(s.lookup(k), func(state *limitState) int64 { return state.touched })
}

// since is the timestamp before which no account of a budget needs to be looked at, as far as is
// known.
func (s *limitStates) since(k limitKey) uint64 {
	return valueOf(s.lookup(k), func(state *limitState) uint64 { return state.since })
}

// byAccountName returns the state of the limit that an account belongs to, or nil.
func (s *limitStates) byAccountName(n accountName) *limitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[n]
}

// forgetMS is how long an unused limit state is kept, in milliseconds.
const forgetMS = 10 * 60 * 1000

// find returns the state of a limit, which it creates if there is none.
func (s *limitStates) find(now int64, n *namespace, k limitKey) *limitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.byKey[k]
	if state == nil {
		state = &limitState{key: k}
		state.setAccounts(n)
		s.byKey[k] = state
		if k.Entity != "" {
			s.byName[n.nameOf(k)] = state
		}
	}
	if now-s.sweptAt > forgetMS/10 {
		s.sweptAt = now
		for k, old := range s.byKey {
			if old != state && old.idle(now) {
				delete(s.byKey, k)
				delete(s.byName, n.nameOf(k))
			}
		}
	}
	return state
}

// idle reports whether nothing is in use and no call has come for long. A call that is about to
// use the limit state has marked it as used.
func (s *limitState) idle(now int64) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	return s.usedAtMS > 0 && now-s.usedAtMS > forgetMS && !s.bucket.moving && !s.busy(now)
}

// setAccounts works the accounts' IDs out.
func (s *limitState) setAccounts(n *namespace) {
	if s.key.Entity == "" {
		if b, err := hex.DecodeString(s.key.Resource); err == nil && len(b) == 16 {
			s.account = tb.BytesToUint128([16]byte(b))
			s.spent = oddID(s.account)
			return
		}
	}
	hash := n.limitHash(s.key)
	s.account = idOf(hash)
	s.spent = oddID(s.account)
	s.hash = hash
}

// periodAccountID is the account of one of a budget's periods.
func (s *limitState) periodAccountID(start, end int64) tb.Uint128 {
	return periodID(s.hash, start, end)
}

// inUse returns the subjects of the limits that are known to be in use.
func (s *limitStates) inUse(now int64) iter.Seq[weir.Subject] {
	return func(yield func(weir.Subject) bool) {
		s.mu.Lock()
		all := slices.Collect(maps.Values(s.byKey))
		s.mu.Unlock()
		for _, state := range all {
			if state.key.Entity != "" && state.inUse(now) && !yield(state.key.Subject) {
				return
			}
		}
	}
}

// inUse reports whether something is taken and has not returned.
func (s *limitState) inUse(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy(now)
}

// busy is inUse for callers that hold s.mu.
func (s *limitState) busy(now int64) bool {
	switch s.key.kind {
	case weir.Bucket:
		k := &s.bucket
		return k.anchor.b > 0 && k.balanceAt(now) < k.anchor.rate.CapacityMilli
	case weir.Budget:
		return s.usedAt(now) > 0
	default:
		return s.expiring.occupied(now) > 0
	}
}
