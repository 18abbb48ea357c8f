package testkit

import "testing"

func TestTigerBeetleURL(t *testing.T) {
	for at, want := range map[string]string{
		"127.0.0.1:3000":           "tigerbeetle://127.0.0.1:3000?cluster=0&namespace=n",
		"127.0.0.1:3000/7":         "tigerbeetle://127.0.0.1:3000?cluster=7&namespace=n",
		"a:1/18446744073709551616": "tigerbeetle://a:1?cluster=18446744073709551616&namespace=n",
	} {
		t.Setenv(tigerBeetleVariable, at)
		if got := TigerBeetleURL(t, "n"); got != want {
			t.Errorf("%s: got %s, want %s", at, got, want)
		}
	}
	for _, at := range []string{"a:1/", "a:1/x", "a:1/-1"} {
		if address, cluster, err := tigerBeetleAt(at); err == nil {
			t.Errorf("%s: got %s, %s, want an error", at, address, cluster)
		}
	}
}
