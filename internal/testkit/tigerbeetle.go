package testkit

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
)

// tigerBeetleVariable holds the address of a TigerBeetle server that tests may write to, as
// HOST:PORT or HOST:PORT/CLUSTER.
const tigerBeetleVariable = "WEIR_TEST_TIGERBEETLE"

// TigerBeetle returns the address of a server and its cluster's ID, by default 0. It does not start
// one: without an address the test ends as by [Require].
func TigerBeetle(t testing.TB) (address string, cluster *big.Int) {
	t.Helper()
	address, cluster, err := tigerBeetleAt(os.Getenv(tigerBeetleVariable))
	if err != nil {
		t.Fatalf("%s: %v", tigerBeetleVariable, err)
	}
	if address == "" {
		Require(t, "tigerbeetle", tigerBeetleVariable+" names no server")
	}
	return address, cluster
}

// TigerBeetleURL returns the URL of a namespace on that server.
func TigerBeetleURL(t testing.TB, namespace string) string {
	t.Helper()
	address, cluster := TigerBeetle(t)
	return "tigerbeetle://" + address + "?cluster=" + cluster.String() + "&namespace=" + namespace
}

// tigerBeetleAt splits HOST:PORT/CLUSTER.
func tigerBeetleAt(at string) (address string, cluster *big.Int, err error) {
	address, number, given := strings.Cut(at, "/")
	cluster = new(big.Int)
	if !given {
		return address, cluster, nil
	}
	if _, ok := cluster.SetString(number, 10); !ok || cluster.Sign() < 0 {
		return "", nil, fmt.Errorf("cluster %q must be a number", number)
	}
	return address, cluster, nil
}
