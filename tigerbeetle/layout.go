//go:build cgo

package tigerbeetle

import (
	"math"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// The codes of accounts say what they are.
const (
	// codeVault is the account that all others deal with. It is the first on its ledger.
	codeVault uint16 = 1
	// codeRegister takes the transfers that only record something.
	codeRegister uint16 = 2
	codeBucket   uint16 = 10
	// codeSpent is the other account of a bucket: what is spent and not refilled yet, in milli-units.
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
	// codeVoid is a header of a lease that was cancelled before it was reserved. Nothing is pending.
	codeVoid uint16 = 16

	// codeKey records the key of one of a lease's charges, which user_data_32 numbers: user_data_64 is
	// its hash. It is in the chain of the reservation.
	codeKey uint16 = 15

	// What a lease does on a limit's account. user_data_32 is the place (see place), user_data_64 of
	// a take the request's fingerprint, of what a settlement did one more than the units that the part
	// stands for since.
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

// place says to which part of which holding a transfer belongs.
func place(holding, charge int) uint32 { return uint32(holding)<<8 | uint32(charge) }

func unplace(p uint32) (holding, charge int) { return int(p >> 8), int(p & 0xff) }

// low is a number below 2^64.
func low(n tb.Uint128) uint64 {
	l, _ := n.Uint64()
	return l
}
