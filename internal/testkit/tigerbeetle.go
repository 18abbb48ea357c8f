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

// TigerBeetle returns where a server is and its cluster's ID, 0 where none is given. Nobody starts
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

// TigerBeetleURL is the URL of a namespace on that server.
func TigerBeetleURL(t testing.TB, namespace string) string {
	t.Helper()
	address, cluster := TigerBeetle(t)
	return "tigerbeetle://" + address + "?cluster=" + cluster.String() + "&namespace=" + namespace
}

// tigerBeetleAt takes HOST:PORT/CLUSTER apart.
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
