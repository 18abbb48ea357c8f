//go:build !cgo

package main

import (
	"context"
	"errors"
)

var errNoClient = errors.New("built without cgo, which TigerBeetle's client needs")

func openLedger(context.Context, *spec) (*world, error)    { return nil, errNoClient }
func openRawLedger(context.Context, *spec) (*world, error) { return nil, errNoClient }
