package client

import (
	"context"
	"errors"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
)

func TestCheckAddresses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		list  string
		words string // empty if the addresses are valid
	}{
		{"127.0.0.1:3000", ""},
		{"a:1 b.example:65535 [::1]:3000", ""},
		{"", "must be given"},
		{"a", `"a": must be HOST:PORT`},
		{"3000", `"3000": must be HOST:PORT`},
		{":3000", `":3000": must be HOST:PORT`},
		{"::1:3000", "must be HOST:PORT"},
		{"[fe80::1%eth0]:3000", "must be HOST:PORT"},
		{"a:0", "a port from 1"},
		{"a:65536", "a port from 1"},
		{"a:http", "a port from 1"},
		{"a:1 b a:1", `"a:1": is given twice`},
	} {
		err := checkAddresses(strings.Fields(tc.list))
		if tc.words == "" {
			if err != nil {
				t.Errorf("%s: got %v", tc.list, err)
			}
			continue
		}
		if !errors.Is(err, weir.Invalid) || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s: got %v, want %q", tc.list, err, tc.words)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	asked := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		switch host {
		case "both":
			return []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("::ffff:10.0.0.1")}, nil
		case "six":
			return []netip.Addr{netip.MustParseAddr("fd00::6")}, nil
		case "none":
			return nil, nil
		}
		return nil, errors.New("no such host")
	}
	got, err := resolve(t.Context(), []string{"127.0.0.1:1", "[::1]:2", "both:3", "six:4"}, asked)
	want := []string{"127.0.0.1:1", "[::1]:2", "10.0.0.1:3", "[fd00::6]:4"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"none:1", "nowhere:1"} {
		if _, err := resolve(t.Context(), []string{bad}, asked); !errors.Is(err, weir.Unavailable) ||
			!strings.Contains(err.Error(), bad) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

// TestCluster checks that the ID of a cluster has 128 bits, and that an invalid one is refused
// before any connection is made.
func TestCluster(t *testing.T) {
	t.Parallel()
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))
	for _, tc := range []struct {
		id    *big.Int
		wrong bool
	}{{nil, false}, {most, false}, {new(big.Int).Add(most, big.NewInt(1)), true}, {big.NewInt(-1), true}} {
		got, err := clusterID(tc.id)
		if e, ok := errors.AsType[*weir.Error](err); tc.wrong && (!ok || e.Field != "store.cluster") {
			t.Errorf("%s: got %v, want an error that names it", tc.id, err)
		}
		if !tc.wrong && (err != nil || tc.id != nil && got.Cmp(tc.id) != 0) {
			t.Errorf("%s: got %s, %v", tc.id, got, err)
		}
	}
}
