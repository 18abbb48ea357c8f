//go:build cgo

package tigerbeetle

import (
	"encoding/binary"
	"encoding/hex"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

// limitState holds what a server knows of one limit of one subject. It is an estimate, used for
// statuses and for denials from memory; only the cluster decides.
type limitState struct {
	key limitKey
	// account is the limit's account. A budget does not use it, because each of its periods has an
	// account. spent is the second account of a bucket.
	account, spent tb.Uint128
	hash           [32]byte
	// payer is the payerHash of the entity, and usage the name of the limit in records of usage.
	payer uint64
	usage usageName
	// last is the definition used by the latest reservation.
	last atomic.Pointer[weir.Limit]

	// mu guards the fields below. It is not locked during a call to the cluster, and a call has at
	// most one limit state locked.
	mu sync.Mutex
	// accountsExist is set once the accounts are known to exist and have been read.
	accountsExist bool
	// funded is set once the account is known to be funded.
	funded bool
	// usedAtMS is when the limit was last used here, in the cluster's milliseconds. touched decides
	// whether a bucket is forgotten: a denial by a forgotten bucket and an extend leave it as it
	// is.
	usedAtMS, touched int64

	// readAt is when the limit was last read from the cluster, in the cluster's milliseconds.
	readAt int64
	// inFlight is the number of chains of this process in flight that change the limit, begun the
	// number ever sent, and updatesInFlight the number of updates in flight, which may give units
	// back.
	inFlight, begun, updatesInFlight int64
	// uncertain is set if the limit was read while chains were in flight, or if the answer to a
	// chain was lost: the estimate may count what these chains did twice, or not at all.
	uncertain bool

	// addingInFlight and returningInFlight are the units that chains in flight may take and give
	// back; added and returned are the sums of what completed chains have taken and given back.
	addingInFlight, returningInFlight, added, returned int64

	estimate
	// since is a timestamp of the cluster. Accounts of a budget that were created before it are of
	// periods that have ended, so they are not read.
	since uint64

	denied rememberedDenial
}

// rememberedDenial is a denial that may be given again without asking the cluster.
type rememberedDenial struct {
	// need is the number of units that had to be free and were not; until is when the denial is
	// forgotten, in the cluster's milliseconds.
	need  int64
	until int64
}

// unnamedSubject returns the subject of a limit whose names this server does not know. Its resource
// is the ID of the account and, if the payerHash is known, the usageName, in hexadecimal.
func unnamedSubject(id tb.Uint128, a *tb.Account, payer uint64) weir.Subject {
	account := id.Bytes()
	b := account[:]
	if payer != 0 {
		b = binary.LittleEndian.AppendUint64(b, payer)
		b = binary.LittleEndian.AppendUint64(b, uint128.Of(a.UserData128).Lo)
		b = binary.LittleEndian.AppendUint64(b, a.UserData64)
	}
	return weir.Subject{Resource: hex.EncodeToString(b)}
}

// setUnnamed sets the account and the usageName from what unnamedSubject returned. It reports
// whether it could.
func (s *limitState) setUnnamed() bool {
	const account, whole = 16, 16 + 3*8
	b, err := hex.DecodeString(s.key.Resource)
	if err != nil || len(b) != account && len(b) != whole {
		return false
	}
	s.account = tb.BytesToUint128([16]byte(b))
	s.spent = oddID(s.account)
	if len(b) == whole {
		s.payer = binary.LittleEndian.Uint64(b[account:])
		s.usage = usageName{
			entity:   usageEntity(s.payer),
			resource: binary.LittleEndian.Uint64(b[account+8:]), limit: binary.LittleEndian.Uint64(b[account+16:]),
		}
	}
	return true
}

// limitStates holds the limit states of a store. find drops those that have been idle for long. mu
// guards the maps, not the states.
type limitStates struct {
	mu    sync.Mutex
	byKey map[limitKey]*limitState
	// byName finds limit states by the hashes on their accounts.
	byName map[accountName]*limitState
	// sweptAt is when idle states were last dropped.
	sweptAt int64
	// names are the names of resources and limits that states had.
	names knownNames
}

// accountName identifies the limit that an account belongs to: by the hashes of the subject and the
// name, and the kind.
type accountName struct {
	subject tb.Uint128
	name    uint64
	kind    weir.Kind
}

// nameOf returns the accountName of a limit.
func (n *namespace) nameOf(k limitKey) accountName {
	return accountName{n.subjectHash(k.Subject), nameHash(k.name), k.kind}
}

// lookup returns the state of a limit, or nil if there is none.
func (s *limitStates) lookup(k limitKey) *limitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[k]
}

// valueOf returns a field of a limit state, read under its lock. For a nil state it returns zero.
func valueOf[T any](state *limitState, field func(*limitState) T) (value T) {
	if state == nil {
		return value
	}
	state.mu.Lock()
	defer state.mu.Unlock()
	return field(state)
}

// touched returns the touched instant of a limit, or 0 if the limit is not known here.
func (s *limitStates) touched(k limitKey) int64 {
	return valueOf(s.lookup(k), func(state *limitState) int64 { return state.touched })
}

// since returns the timestamp before which accounts of a budget need not be read, or 0.
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

// find returns the state of a limit, and creates it if there is none. Once a minute it drops the
// states that are idle.
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
			s.names.add(k)
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

// idle reports whether nothing of the limit is in use and no call has used it for forgetMS. A new
// state has no usedAtMS and is never idle; a locked one is in use.
func (s *limitState) idle(now int64) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	return s.usedAtMS > 0 && now-s.usedAtMS > forgetMS && !s.bucket.moving && !s.busy(now)
}

// setAccounts derives the IDs of the accounts from the key.
func (s *limitState) setAccounts(n *namespace) {
	if s.key.Entity == "" && s.setUnnamed() {
		return
	}
	hash := n.limitHash(s.key)
	s.account = idOf(hash)
	s.spent = oddID(s.account)
	s.hash = hash
	s.payer, s.usage = n.payerHash(s.key.Entity), n.usageName(s.key.Subject, s.key.name)
}

// periodAccountID returns the ID of the account of one of a budget's periods.
func (s *limitState) periodAccountID(start, end int64) tb.Uint128 {
	return periodID(s.hash, start, end)
}

// inUse yields the subjects of the limits that are in use, as far as this server knows.
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

// inUse reports whether units have been taken that have not returned.
func (s *limitState) inUse(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy(now)
}

// busy is like inUse, for callers that hold s.mu.
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
