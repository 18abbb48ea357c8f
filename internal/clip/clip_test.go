package clip_test

import (
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/clip"
)

func TestText(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("x", 64)
	for _, tc := range []struct{ in, want string }{
		{"", ""},
		{full, full},
		{full + "y", full + "… (65 bytes)"},
		{full[:63] + "ü", full[:63] + "… (65 bytes)"},
		{"a\xffb", "a\uFFFDb"},
	} {
		if got := clip.Text(tc.in); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"rpm", "rpm"},
		{"tpm rpm tpm", "rpm, tpm"},
		{"j i h g f e d c b a", "a, b, c, d, e, f, g, h, i, j"},
		{"k j i h g f e d c b a a", "a, b, c, d, e, f, g, h, i, j and 1 more"},
	} {
		in := strings.Fields(tc.in)
		if got := clip.Names(in); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.in, got, tc.want)
		}
		if strings.Join(in, " ") != tc.in {
			t.Errorf("%s: the names were reordered", tc.in)
		}
	}
}
