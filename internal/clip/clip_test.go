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
