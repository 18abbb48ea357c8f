package conformance

import "testing"

// TestScriptedBlocks checks that a check that does not hold fails its case, and that a block is
// played when it has to be.
func TestScriptedBlocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ steps, want string }{
		{"explain a m\n  a system m=10,n=9", "levels: got a system m=10,n=10, want a system m=10,n=9"},
		{"explain a m", "want "},
		{"id X\nadmit under X a n=1\nadmit under X a n=1 -> new", "was not there before"},
		{"id X 30s\nadmit under X a n=1 -> new\nleft a n=10", "got 9 available, want 10"},
		{"fail any a n=1", "got admitted"},
		{"admit a n=10\nfail any a n=1", "denied"},
		{"status a m -> order -", "order: got a.m,a.n, want"},
		{"status a m -> n on x", "n on: got m, want x"},
		{"where Remembers\n  admit a n=1\nleft a n=10", "got 9 available, want 10"},
		{"where Remembers a n=9\n  admit a n=1\nleft a n=9", "got 10 available, want 9"},
		{"unless Remembers a n=9\n  admit a n=1\nleft a n=10", "got 9 available, want 10"},
		{"unless Remembers\n  admit a n=1\nleft a n=9", "got 10 available, want 9"},
		{"by one\n  repeat 2\n    admit a n=1\nleft a n=10", "got 8 available, want 10"},
	} {
		failsWith(t, test.steps, test.want)
	}
}
