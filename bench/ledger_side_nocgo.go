//go:build !cgo

package main

import (
	"context"
	"errors"
)

// openLedgerSide fails: TigerBeetle's client is a C library.
func openLedgerSide(context.Context, int, *ledgerArena) (ledgerSide, error) {
	return nil, errors.New("bench: built without cgo, which TigerBeetle's client needs")
}
