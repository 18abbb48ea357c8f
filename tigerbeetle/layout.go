//go:build cgo

package tigerbeetle

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

// The codes of accounts say what they are.
const (
	// codeVault is the account that all others deal with. It is the first on its ledger.
	codeVault uint16 = 1
	// codeRegister takes the transfers that only record something.
	codeRegister uint16 = 2
	codeBucket   uint16 = 10
	// codeSpent is the other account of a bucket: what is spent and not refilled yet, in
	// milli-units.
	codeSpent       uint16 = 11
	codeWindow      uint16 = 12
	codeConcurrency uint16 = 13
	// codeBudget is the account of one period of a budget; its user_data_32 is the period's end in
	// Unix seconds.
	codeBudget uint16 = 14
)

// The codes of transfers say what they do. A post or void has that of its pending transfer.
const (
	codeFund    uint16 = 1
	codeVersion uint16 = 2

	// Headers, from the vault to the register. user_data_64 is the fingerprint of what was asked.
	codeLease     uint16 = 10
	codeAdjusted  uint16 = 11
	codeCompleted uint16 = 12
	codeCancelled uint16 = 13
	codeExtended  uint16 = 14
	// codeVoid is a header of a lease that was cancelled before it was reserved. Nothing is
	// pending.
	codeVoid uint16 = 16

	// codeKey records the key of one of a lease's charges, which user_data_32 numbers: user_data_64
	// is its hash. It is in the chain of the reservation.
	codeKey uint16 = 15

	// What a lease does on a limit's account. user_data_32 is the part (see packPart), user_data_64
	// of a take the request's fingerprint, of what an update did one more than the units that the
	// part stands for since.
	codeCheck  uint16 = 20
	codeTake   uint16 = 21
	codeGrown  uint16 = 22
	codeKept   uint16 = 23
	codeRefund uint16 = 24

	codeRefill   uint16 = 30
	codeCapacity uint16 = 31
)

// What accounts are funded with. A balance of a bucket can fall as low as 64 bits hold, and the
// units in use elsewhere add up to as much.
const (
	fundUnits uint64 = math.MaxInt64
	fundMilli uint64 = math.MaxUint64
)

const (
	flagLinked    = 1 << 0
	flagPending   = 1 << 1
	flagPost      = 1 << 2
	flagVoid      = 1 << 3
	flagBalancing = 1 << 4 // of the debit account

	// accountBounded: debits must not exceed credits.
	accountBounded = 1 << 1
)

// codeOf is the code of the account of a kind of limit.
func codeOf(k weir.Kind) uint16 {
	switch k {
	case weir.Bucket:
		return codeBucket
	case weir.Window:
		return codeWindow
	case weir.Concurrency:
		return codeConcurrency
	default:
		return codeBudget
	}
}

// kindOf is the kind of limit whose account has a code; empty for an account of another sort.
func kindOf(code uint16) weir.Kind {
	switch code {
	case codeBucket:
		return weir.Bucket
	case codeWindow:
		return weir.Window
	case codeConcurrency:
		return weir.Concurrency
	case codeBudget:
		return weir.Budget
	}
	return ""
}

// packPart says to which part of which holding a transfer belongs.
func packPart(holding, charge int) uint32 { return uint32(holding)<<8 | uint32(charge) }

func unpackPart(p uint32) (holding, charge int) { return int(p >> 8), int(p & 0xff) }

// lowUint64 is a number below 2^64.
func lowUint64(n tb.Uint128) uint64 {
	l, _ := n.Uint64()
	return l
}

// digest is a hash of texts, each kept apart from the next.
func digest(texts ...string) [sha256.Size]byte {
	h := sha256.New()
	var length [4]byte
	for _, s := range texts {
		binary.LittleEndian.PutUint32(length[:], uint32(len(s)))
		h.Write(length[:])
		h.Write([]byte(s))
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// idOf is the first 128 bits of a digest as a valid ID: neither 0 nor the maximum, and even, so
// that its odd neighbour is free.
func idOf(sum [sha256.Size]byte) tb.Uint128 {
	sum[0] &^= 1
	sum[15] &= 0x7f
	sum[1] |= 1 << 7
	return tb.BytesToUint128([16]byte(sum[:16]))
}

// oddID is the neighbour of an even ID.
func oddID(id tb.Uint128) tb.Uint128 {
	b := id.Bytes()
	b[0] |= 1
	return tb.BytesToUint128(b)
}

// namespace is a world of limits on a cluster.
type namespace struct {
	name            string
	ledger          uint32
	vault, register tb.Uint128
}

func newNamespace(name string) namespace {
	sum := digest("namespace", name)
	vault := idOf(sum)
	return namespace{
		name: name, ledger: binary.LittleEndian.Uint32(sum[16:]) | 1, vault: vault, register: oddID(vault),
	}
}

// limitKey names a limit of one (entity, resource). A limit that changes its kind is another one.
type limitKey struct {
	weir.Subject
	name string
	kind weir.Kind
}

// limitHash names a limit on the cluster: the number by which its accounts can be found.
func (n *namespace) limitHash(k limitKey) [sha256.Size]byte {
	return digest("limit", n.name, k.Entity, k.Resource, k.name, string(k.kind))
}

// nameHash stands for the name of a limit on its accounts.
func nameHash(name string) uint64 {
	sum := digest("name", name)
	return binary.LittleEndian.Uint64(sum[:]) | 1
}

// subjectHash stands for an (entity, resource) on the accounts of its limits.
func (n *namespace) subjectHash(s weir.Subject) tb.Uint128 {
	return idOf(digest("subject", n.name, s.Entity, s.Resource))
}

// periodID is the account of one period of a budget.
func periodID(limit [sha256.Size]byte, start, end int64) tb.Uint128 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(start))
	binary.LittleEndian.PutUint64(b[8:], uint64(end))
	return idOf(digest("period", string(limit[:]), string(b[:])))
}

// leaseNumber is a lease's ID as a number: the same bits, the first one the most significant.
func leaseNumber(id weir.LeaseID) tb.Uint128 {
	var b [16]byte
	for i := range b {
		b[i] = id[15-i]
	}
	return tb.BytesToUint128(b)
}

// transferID is that of one event of a lease: by step and index, after the lease's time. So IDs
// grow with time, which TigerBeetle needs to be fast, and cannot be guessed without hashing.
func transferID(lease weir.LeaseID, step int64, index int) tb.Uint128 {
	return stepID(lease, step).event(index)
}

// stepBytes are what the IDs of a step's events have in common: 64 bits of a hash, and the lease's
// time.
type stepBytes [16]byte

// stepID begins the IDs of a step.
func stepID(lease weir.LeaseID, step int64) stepBytes {
	var b [1 + 16 + 8]byte
	b[0] = 't'
	copy(b[1:], lease[:])
	binary.LittleEndian.PutUint64(b[17:], uint64(step))
	sum := sha256.Sum256(b[:])
	var id stepBytes
	copy(id[2:10], sum[:8])
	for i := range 6 {
		id[10+i] = lease[5-i]
	}
	if id[15] == 0xff {
		id[15] = 0xfe // never the maximum
	}
	return id
}

// event is the ID of an event; its index has at most 15 bits.
func (s stepBytes) event(index int) tb.Uint128 {
	binary.LittleEndian.PutUint16(s[:], uint16(index)<<1|1) // never 0
	return tb.BytesToUint128(s)
}

// anchorID is that of the refill of a bucket which follows the anchor at b, the k-th of its
// millisecond, and of the change of capacity that goes with it.
func anchorID(spent tb.Uint128, b int64, k uint8, code uint16) tb.Uint128 {
	var at [11]byte
	binary.LittleEndian.PutUint64(at[:], uint64(b))
	at[8] = k
	binary.LittleEndian.PutUint16(at[9:], code)
	account := spent.Bytes()
	sum := digest("anchor", string(account[:]), string(at[:]))
	var id [16]byte
	copy(id[:10], sum[:10])
	id[0] |= 1
	ms := uint64(b)
	for i := range 6 {
		id[10+i] = byte(ms >> (8 * i))
	}
	if id[15] == 0xff {
		id[15] = 0xfe
	}
	return tb.BytesToUint128(id)
}

// fundID is that of the transfer that funds an account.
func fundID(account tb.Uint128) tb.Uint128 {
	b := account.Bytes()
	return idOf(digest("fund", string(b[:])))
}

// accountPiece is a piece that only says which account.
func accountPiece(id tb.Uint128) driver.Piece {
	n := uint128.Of(id)
	return driver.Piece{Until: int64(n.Lo), Mark: int64(n.Hi)}
}

// accountOf is the account that such a piece says.
func accountOf(p driver.Piece) tb.Uint128 {
	return uint128.Number{Hi: uint64(p.Mark), Lo: uint64(p.Until)}.Uint128()
}

// tokenPiece is the first piece of a lease's first holding: the step of the token, the number of
// the last adjust, and the highest step of an extend, or of a far adjust in the place of one. The
// engine learns the number from its own adjusts alone, but here its holdings go with it. The step
// of an extend is below zero, so that the piece is not taken for a slot.
func tokenPiece(step, seq, extended int64) driver.Piece {
	return driver.Piece{Units: seq, Until: -extended, Mark: step}
}

// ofToken reads such a piece.
func ofToken(p driver.Piece) (step, seq, extended int64) { return p.Mark, p.Units, -p.Until }
