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

// The codes of accounts.
const (
	// codeVault is the account that all others deal with. It is the first account on its ledger.
	codeVault uint16 = 1
	// codeRegister is the account credited by transfers that only record something.
	codeRegister uint16 = 2
	// codeUsageAccount is the account of the records of usage: credited by use, debited by what was
	// given back.
	codeUsageAccount uint16 = 3
	codeBucket       uint16 = 10
	// codeSpent is the second account of a bucket. Its balance counts the milli-units that are
	// spent and not refilled yet.
	codeSpent       uint16 = 11
	codeWindow      uint16 = 12
	codeConcurrency uint16 = 13
	// codeBudget is the account of one period of a budget; its user_data_32 is the period's end in
	// Unix seconds.
	codeBudget uint16 = 14
)

// The codes of transfers. A post or void has the code of its pending transfer.
const (
	codeFund    uint16 = 1
	codeVersion uint16 = 2

	// Headers debit the vault and credit the register. user_data_64 of codeLease is the fingerprint
	// of the request; that of codeAdjusted and codeExtended is the step. user_data_32 of codeAdjusted
	// and codeExtended has random bits, see endMark.
	codeLease    uint16 = 10
	codeAdjusted uint16 = 11
	codeExtended uint16 = 14
	// codeVoid is the header of a lease that was cancelled before it was reserved. It is not
	// pending.
	codeVoid uint16 = 16

	// codeKey records the key of one of a lease's charges: user_data_32 is the number of the
	// charge, user_data_64 the hash. It is part of the reservation's chain.
	codeKey uint16 = 15

	// The transfers of a lease on a limit's account. user_data_32 is the holding and charge (see
	// packPart). user_data_64 is the hash of the limit's entity in a check or take of a reservation
	// (see payerHash). In all others it is the units that the holding or part stands for from then on,
	// plus one, so that zero means not recorded.
	codeCheck  uint16 = 20
	codeTake   uint16 = 21
	codeGrown  uint16 = 22
	codeKept   uint16 = 23
	codeRefund uint16 = 24

	codeRefill   uint16 = 30
	codeCapacity uint16 = 31

	// Records of usage are between the register and the account of usage. user_data_32 is the hour,
	// in Unix time / 3600, and the other user data are those of a usageName. The amount of codeUsage
	// is the units in its low 64 bits and the number of changes above; that of codeOverdrawn is how
	// often a shadow limit was left in debt.
	codeUsage     uint16 = 40
	codeOverdrawn uint16 = 41
)

// fundUnits and fundMilli are the constant credits that accounts are funded with, buckets in
// milli-units and all others in units. fundMilli covers a full bucket and a debt of 2^63
// milli-units; fundUnits is the most that can be in use of any other limit.
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

	// accountBounded makes the cluster refuse debits that exceed the account's credits.
	accountBounded = 1 << 1
)

// codeOf returns the code of the accounts of a kind of limit.
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

// kindOf returns the kind of limit that an account's code stands for, or "" if it does not stand
// for a limit.
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

// packPart packs the holding and the charge that a transfer belongs to into a user_data_32.
func packPart(holding, charge int) uint32 { return uint32(holding)<<8 | uint32(charge) }

func unpackPart(p uint32) (holding, charge int) { return int(p >> 8), int(p & 0xff) }

// lowUint64 returns the low 64 bits of a number, which must be below 2^64.
func lowUint64(n tb.Uint128) uint64 {
	l, _ := n.Uint64()
	return l
}

// digest hashes texts, each with its length before it, so that different lists differ.
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

// idOf returns the first 128 bits of a digest as a valid ID, neither 0 nor the maximum. The ID is
// even, so that oddID can derive a second one from it.
func idOf(sum [sha256.Size]byte) tb.Uint128 {
	sum[0] &^= 1
	sum[15] &= 0x7f
	sum[1] |= 1 << 7
	return tb.BytesToUint128([16]byte(sum[:16]))
}

// oddID returns the odd neighbour of an even ID.
func oddID(id tb.Uint128) tb.Uint128 {
	b := id.Bytes()
	b[0] |= 1
	return tb.BytesToUint128(b)
}

// namespace is a namespace's ledger and the accounts that belong to no limit.
type namespace struct {
	name                   string
	ledger                 uint32
	vault, register, usage tb.Uint128
}

func newNamespace(name string) namespace {
	sum := digest("namespace", name)
	vault := idOf(sum)
	return namespace{
		name: name, ledger: binary.LittleEndian.Uint32(sum[16:]) | 1, vault: vault, register: oddID(vault),
		usage: idOf(digest("usage account", name)),
	}
}

// limitKey identifies a limit of one subject. A limit whose kind is changed is another limit.
type limitKey struct {
	weir.Subject
	name string
	kind weir.Kind
}

// limitHash returns the hash from which the IDs of a limit's accounts are made.
func (n *namespace) limitHash(k limitKey) [sha256.Size]byte {
	return digest("limit", n.name, k.Entity, k.Resource, k.name, string(k.kind))
}

// nameHash returns the hash of a limit's name, which is user_data_64 of its accounts.
func nameHash(name string) uint64 {
	sum := digest("name", name)
	return binary.LittleEndian.Uint64(sum[:]) | 1
}

// subjectHash returns the hash of an entity and resource, which is user_data_128 of the accounts of
// their limits.
func (n *namespace) subjectHash(s weir.Subject) tb.Uint128 {
	return idOf(digest("subject", n.name, s.Entity, s.Resource))
}

// payerHash returns the hash of an entity, which is user_data_64 of the transfers by which a
// reservation takes units of the entity's limits. So a server that settles the lease without knowing
// its names can record whose usage it is. It is never 0.
func (n *namespace) payerHash(entity string) uint64 {
	sum := digest("payer", n.name, entity)
	return binary.LittleEndian.Uint64(sum[:]) | 1
}

// usageName says in hashes whose usage a record is: the user data of its transfer.
type usageName struct {
	// entity is a hash of the entity's payerHash, so that no transfer of a lease has it; 0 if the
	// entity is not known.
	entity uint64
	// resource and limit are the low bits of the subjectHash, and the nameHash.
	resource, limit uint64
}

// usageName returns the usageName of a limit.
func (n *namespace) usageName(s weir.Subject, limit string) usageName {
	return usageName{
		entity:   usageEntity(n.payerHash(s.Entity)),
		resource: uint128.Of(n.subjectHash(s)).Lo, limit: nameHash(limit),
	}
}

// usageEntity returns the entity of a usageName by its payerHash.
func usageEntity(payer uint64) uint64 {
	if payer == 0 {
		return 0
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], payer)
	sum := digest("usage", string(b[:]))
	return binary.LittleEndian.Uint64(sum[:]) | 1
}

// periodID returns the ID of the account of one period of a budget.
func periodID(limit [sha256.Size]byte, start, end int64) tb.Uint128 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(start))
	binary.LittleEndian.PutUint64(b[8:], uint64(end))
	return idOf(digest("period", string(limit[:]), string(b[:])))
}

// leaseNumber returns a lease's ID as a number, whose most significant byte is the first of the ID.
func leaseNumber(id weir.LeaseID) tb.Uint128 {
	var b [16]byte
	for i := range b {
		b[i] = id[15-i]
	}
	return tb.BytesToUint128(b)
}

// transferID returns the ID of the event of a lease with a step and an index. Its high bits are the
// lease's time, because TigerBeetle is fast if IDs grow with time, and the bits below are a hash.
func transferID(lease weir.LeaseID, step int64, index int) tb.Uint128 {
	return stepID(lease, step).event(index)
}

// stepBytes is the part that the IDs of one step's events share: 64 bits of a hash, and the lease's
// time.
type stepBytes [16]byte

// stepID returns the shared part of the IDs of a step.
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
		id[15] = 0xfe // the maximum is not a valid ID
	}
	return id
}

// event returns the ID of the event with an index, which has at most 15 bits.
func (s stepBytes) event(index int) tb.Uint128 {
	binary.LittleEndian.PutUint16(s[:], uint16(index)<<1|1) // 0 is not a valid ID
	return tb.BytesToUint128(s)
}

// anchorID returns the ID of the transfer, a refill or a change of capacity, that replaces the
// anchor of a bucket at b, the k-th anchor of that millisecond. It depends on the replaced anchor
// alone, so of several servers that replace the same anchor only one succeeds.
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

// fundID returns the ID of the transfer that funds an account. It depends on the account alone. It is
// odd, and stays so: with another ID, every account on an existing ledger would be funded again.
func fundID(account tb.Uint128) tb.Uint128 {
	b := account.Bytes()
	return oddID(idOf(digest("fund", string(b[:]))))
}

// accountPiece returns a piece that holds an account's ID and no units.
func accountPiece(id tb.Uint128) driver.Piece {
	n := uint128.Of(id)
	return driver.Piece{Until: int64(n.Lo), Mark: int64(n.Hi)}
}

// accountOf returns the account that an accountPiece holds.
func accountOf(p driver.Piece) tb.Uint128 {
	return uint128.Number{Hi: uint64(p.Mark), Lo: uint64(p.Until)}.Uint128()
}

// tokenPiece returns the first piece of a lease's first holding, which carries what the next update
// needs to know of the lease: the step of its token, the sequence number of its last adjust, and
// the highest step of an extend, or of a far adjust that took the place of one. Another server may
// have made the adjust, so the number travels with the holdings. The step of an extend is stored
// below zero, so that the piece is not taken for a live slot.
func tokenPiece(step, seq, extended int64) driver.Piece {
	return driver.Piece{Units: seq, Until: -extended, Mark: step}
}

// ofToken returns what a tokenPiece carries.
func ofToken(p driver.Piece) (step, seq, extended int64) { return p.Mark, p.Units, -p.Until }
