//go:build cgo

package emulator_test

import (
	"context"
	"fmt"
	"log"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// The emulator takes the calls of TigerBeetle's client. Here an account may not be debited more than
// it has been credited, so the second of two transfers is refused.
func Example() {
	cluster := emulator.New(nil)
	defer cluster.Close()
	ctx := context.Background()

	bounded := tb.AccountFlags{DebitsMustNotExceedCredits: true}.ToUint16()
	_, err := cluster.CreateAccounts(ctx, []tb.Account{
		{ID: tb.ToUint128(1), Ledger: 1, Code: 1},
		{ID: tb.ToUint128(2), Ledger: 1, Code: 1, Flags: bounded},
	})
	if err != nil {
		log.Fatal(err)
	}
	transfer := func(id, debit, credit, amount uint64) tb.Transfer {
		return tb.Transfer{
			ID: tb.ToUint128(id), DebitAccountID: tb.ToUint128(debit), CreditAccountID: tb.ToUint128(credit),
			Amount: tb.ToUint128(amount), Ledger: 1, Code: 1,
		}
	}
	results, err := cluster.CreateTransfers(ctx, []tb.Transfer{
		transfer(10, 1, 2, 100), transfer(11, 2, 1, 80), transfer(12, 2, 1, 80),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.Status)
	}
	// Output:
	// TransferCreated
	// TransferCreated
	// TransferExceedsCredits
}
