package store

import (
	"context"
	"math/big"
	"net"
	"strings"

	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle"
)

const tigerBeetleScheme = "tigerbeetle:"

// tigerBeetleURL is a parsed tigerbeetle: URL.
type tigerBeetleURL struct {
	// addresses are the addresses of the replicas; nil for the emulator.
	addresses []string
	options   tigerbeetle.Options
}

// openTigerBeetle opens a store from the part of its URL after "tigerbeetle:".
func openTigerBeetle(ctx context.Context, rest string, o *Options) (driver.Store, error) {
	t, err := parseTigerBeetle(rest)
	if err != nil {
		return nil, err
	}
	t.options.Definitions, t.options.OnError = o.Definitions, o.OnError
	if t.addresses == nil {
		return openEmulator(ctx, &t.options)
	}
	t.options.ReadOnly, t.options.Follow, t.options.PutInForce = o.ReadOnly, o.Follow, o.PutInForce
	return asStore(tigerbeetle.Open(ctx, t.addresses, &t.options))
}

// parseTigerBeetle parses the part of a URL after "tigerbeetle:".
func parseTigerBeetle(rest string) (*tigerBeetleURL, error) {
	list, query, _ := strings.Cut(rest, "?")
	list, ok := strings.CutPrefix(list, "//")
	if !ok || list == "" || strings.ContainsAny(list, "@/#") {
		// The error does not show this part, because it may contain a password.
		return nil, invalid("store", tigerBeetleScheme,
			"must be tigerbeetle://HOST:PORT,HOST:PORT… with the address of each replica, or "+
				"tigerbeetle://emulator, with or without ?NAME=VALUE after it")
	}
	t := &tigerBeetleURL{}
	known := []string{"namespace"}
	if list != "emulator" {
		known = []string{"cluster", "namespace"}
		t.addresses = strings.Split(list, ",")
	}
	q, err := parseQuery(query, known...)
	if err != nil {
		return nil, err
	}
	for _, address := range t.addresses {
		if err := checkAddress(address); err != nil {
			return nil, err
		}
	}
	namespace, given := q["namespace"]
	if given && namespace == "" {
		return nil, invalid("store.namespace", "", "must not be empty")
	}
	t.options.Namespace = namespace
	if cluster, given := q["cluster"]; given {
		if t.options.Cluster, err = parseCluster(cluster); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// parseCluster parses the ID of a cluster: 128 bits, in decimal as TigerBeetle writes it.
func parseCluster(text string) (*big.Int, error) {
	const digits = 39 // the length of 2^128-1
	id, ok := new(big.Int), text != "" && len(text) <= digits && strings.Trim(text, "0123456789") == ""
	if ok {
		_, ok = id.SetString(text, 10)
	}
	if !ok || id.BitLen() > 128 {
		return nil, invalid("store.cluster", text, "must be a whole number from 0 to 2^128-1, in decimal")
	}
	return id, nil
}

// checkAddress refuses an address that is not HOST:PORT.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return invalid("store.addresses", address, "must be HOST:PORT, such as 10.0.0.1:3000")
	}
	return nil
}
