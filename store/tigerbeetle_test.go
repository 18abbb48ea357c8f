package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/store"
)

func TestOpenTigerBeetleRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ url, field, value, words string }{
		{"tigerbeetle:", "store", "tigerbeetle:", "with the address of each replica"},
		{"tigerbeetle:127.0.0.1:3000", "store", "tigerbeetle:", "with the address of each replica"},
		{"tigerbeetle://", "store", "tigerbeetle:", "with the address of each replica"},
		{"tigerbeetle://?cluster=1", "store", "tigerbeetle:", "with the address of each replica"},
		{"tigerbeetle://user:secret@h:3000", "store", "tigerbeetle:", "?NAME=VALUE after it"},
		{"tigerbeetle://h:3000/secret", "store", "tigerbeetle:", "?NAME=VALUE after it"},
		{"tigerbeetle://h:3000#secret", "store", "tigerbeetle:", "?NAME=VALUE after it"},
		{"tigerbeetle://h", "store.addresses", "h", "must be HOST:PORT"},
		{"tigerbeetle://h:", "store.addresses", "h:", "must be HOST:PORT"},
		{"tigerbeetle://:3000", "store.addresses", ":3000", "must be HOST:PORT"},
		{"tigerbeetle://::1:3000", "store.addresses", "::1:3000", "must be HOST:PORT"},
		{"tigerbeetle://h:3000,", "store.addresses", "", "must be HOST:PORT"},
		{"tigerbeetle://h:3000,i", "store.addresses", "i", "must be HOST:PORT"},
		{"tigerbeetle://h:3000?cluster=", "store.cluster", "", "whole number"},
		{"tigerbeetle://h:3000?cluster=-1", "store.cluster", "-1", "whole number"},
		{"tigerbeetle://h:3000?cluster=0x7", "store.cluster", "0x7", "whole number"},
		{"tigerbeetle://h:3000?cluster=+7", "store.cluster", "+7", "whole number"},
		{"tigerbeetle://h:3000?cluster=1_000", "store.cluster", "1_000", "whole number"},
		{
			"tigerbeetle://h:3000?cluster=340282366920938463463374607431768211456", "store.cluster",
			"340282366920938463463374607431768211456", "2^128-1",
		},
		{"tigerbeetle://h:3000?cluster", "store.cluster", "", "must have a value"},
		{"tigerbeetle://h:3000?cluster=1&cluster=2", "store.cluster", "2", "twice"},
		{"tigerbeetle://h:3000?namespace=", "store.namespace", "", "must not be empty"},
		{"tigerbeetle://h:3000?namespace=%zz", "store.namespace", "%zz", "percent"},
		{"tigerbeetle://h:3000?table=x", "store.table", "x", "is unknown"},
		{"tigerbeetle://emulator?cluster=0", "store.cluster", "0", "is unknown"},
		{"tigerbeetle://emulator:3000,h", "store.addresses", "h", "must be HOST:PORT"},
	} {
		b, err := store.Open(t.Context(), tc.url, nil)
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || b != nil {
			t.Errorf("%q: got %v, %v; want a typed error", tc.url, b, err)
			continue
		}
		if e.Code != weir.Invalid || e.Field != tc.field || e.Value != tc.value ||
			!strings.Contains(e.Reason, tc.words) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %+v, want about %s %q: %s", tc.url, e, tc.field, tc.value, tc.words)
		}
	}
}
