package connect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
)

// TestTarget checks that a flag takes precedence over both variables, and WEIR_SERVER over
// WEIR_STORE.
func TestTarget(t *testing.T) {
	t.Parallel()
	const store = "memory:?snapshot=x"
	both := map[string]string{ServerEnv: "http://env", StoreEnv: store + "-env"}
	for _, c := range []struct {
		args          string
		env           map[string]string
		server, store string
		byDefault     bool
	}{
		{"", nil, DefaultServer, "", true},
		{"", map[string]string{ServerEnv: "http://env"}, "http://env", "", false},
		{"", map[string]string{StoreEnv: store}, "", store, false},
		{"", both, "http://env", "", false},
		{"--server http://flag", both, "http://flag", "", false},
		{"--server http://flag", nil, "http://flag", "", false},
		{"--store " + store, both, "", store, false},
		{"--store " + store, nil, "", store, false},
	} {
		cmd := &cobra.Command{Use: "x"}
		got := addTarget(cmd, Reads)
		if err := cmd.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		err := got.resolve(cmd, func(name string) string { return c.env[name] })
		if err != nil || got.Server != c.server || got.store != c.store || got.Defaulted != c.byDefault {
			t.Errorf("%q with %v: got %+v and %v, want %q, %q, %v",
				c.args, c.env, got, err, c.server, c.store, c.byDefault)
		}
	}
}

// TestAdvice checks that errors have advice only if it may help.
func TestAdvice(t *testing.T) {
	t.Parallel()
	gone := &weir.Error{Code: weir.Unavailable, Reason: "the server did not answer"}
	refused := &weir.Error{Code: weir.PermissionDenied, Reason: "a bearer token is needed"}
	for _, c := range []struct {
		name   string
		target Target
		err    error
		want   string
	}{
		{"nothing wrong", Target{Server: DefaultServer, Defaulted: true}, nil, ""},
		{"no server if none is named", Target{Defaulted: true}, gone, "(is `weir serve` running? "},
		{"no server if one is named", Target{Server: "http://there"}, gone, ""},
		{"a store in use", Target{store: "memory:?snapshot=x"}, gone, "(if a server has the store open, "},
		{"no bearer token", Target{anonymous: true}, refused, "(give a bearer token in WEIR_TOKEN"},
		{"a weak bearer token", Target{Server: "http://there"}, refused, ""},
		{"a denial", Target{Server: DefaultServer, Defaulted: true}, &weir.DeniedError{}, ""},
	} {
		err := c.target.Hint(c.err)
		advised := errors.Is(err, c.err) && (err == nil || strings.Contains(err.Error(), c.want))
		if !advised || c.want == "" && strings.Contains(fmt.Sprint(err), "(") {
			t.Errorf("%s: got %v, want %v with %q", c.name, err, c.err, c.want)
		}
	}
}

func TestSnapshotFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rest, want string
		ok         bool
	}{
		{"", "", false},
		{"?", "", false},
		{"?every=1s", "", false},
		{"?snapshots=x", "", false},
		{"?snapshot=x", "x", true},
		{"?every=1s&snapshot=a%20b%2Fc+d", "a b/c+d", true},
		{"?snapshot=", "", true},
		{"?snapshot=%zz", "", true},
	} {
		if got, ok := snapshotFile(c.rest); got != c.want || ok != c.ok {
			t.Errorf("%q: got %q and %v, want %q and %v", c.rest, got, ok, c.want, c.ok)
		}
	}
}
