package apijson

import "testing"

func TestVersionOf(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		`"Zq3_x"`:      "Zq3_x",
		`"Zq3_x-gzip"`: "Zq3_x", // compressed by Apache
		`"-gzip"`:      "",
		`W/"Zq3_x"`:    "",
		`"Zq3_x`:       "",
		`""`:           "",
		`"a b"`:        "",
	} {
		got, ok := VersionOf(tag)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", tag, got, want)
		}
	}
}
