package conformance

import (
	"strings"
	"testing"
)

// TestParseCasesMistakes checks that a case that cannot be parsed is refused with its line.
func TestParseCasesMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ step, want string }{
		{"admt a n=1", `unknown verb "admt"`},
		{"admit a", `"" does not begin with " "`},
		{"admit a n=x", "invalid syntax"},
		{"fail badly a n=1", "no such code"},
		{"returns a n=1", "no wait"},
		{"exactly 3 a n=1", `does not begin with " of "`},
		{"left a n=1 m=2", `" m=2" is left over`},
		{"advance soon", "invalid duration"},
		{"extend L -> holds on", "invalid duration"},
		{"deny a n=1 -> n", "nothing is said of n"},
		{"deny a n=1 -> expires 1h", `deny does not look at "expires"`},
		{"returns a n=1 after 1s -> n available 9", `returns does not look at "limit"`},
		{"repeat 2\n  amit a n=1", "3: "},
		{"when a b\n  amit a n=1", "3: "},
		{"configure\n  systems n=1:bucket", "unknown word"},
		{"repeat 2\n    admit a n=1", `3: "admit a n=1" is indented too far`},
		{"where Flying\n  admit a n=1", "no leeway or trait"},
		{"entity a parent", `" parent" is left over`},
		{"for x in n=1 ; m=1 | z=1\n  ajust L 1 $x", "ajust L 1 n=1 ; m=1"},
	} {
		_, err := parseCases("t.txt", "case x\n"+test.step)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want %q in it", test.step, err, test.want)
		}
	}
}

// TestScriptedNeeds checks that a case is left out if a store lacks what the case's definitions
// have.
func TestScriptedNeeds(t *testing.T) {
	t.Parallel()
	cases, err := parseCases("t.txt", `
case x
each window budget
timed
system n=1:slow-$k,w=1:slow-window?,s=1:slow-bucket:shadow
entity a parent b cascade
entity b parent c cascade
admit a n=1
configure
  system n=1:slow-concurrency
configure -> invalid
  system n=1:slow-window
`)
	if err != nil || len(cases) != 2 {
		t.Fatalf("got %d cases, %v", len(cases), err)
	}
	n := cases[1].Needs
	if got := cases[1].Name; got != "x: budget" {
		t.Errorf("got the name %q", got)
	}
	if len(n.Kinds) != 3 || n.Kinds[0] != "budget" || !n.Shadow || n.Depth != 2 || !n.Exact || !n.Virtual {
		t.Errorf("got needs %+v", n)
	}
}

// TestScriptedMistakes checks that a step with another answer than expected fails the case, with
// its line.
func TestScriptedMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ steps, want string }{
		{"S = status a m\nadmit a n=1\nstatus a m -> same S", "t.txt:5: status a m -> same S: got"},
		{"L = admit a n=1\nR = extend L\nadvance 1s\nextend L -> same R", "t.txt:6: "},
		{"status a m -> same S", "no answer is called S"},
		{"admit a n=9\ndeny a n=2,m=1 -> exceeded m n", "exceeded: got n, want m n"},
		{"status a m -> n available 9", "n available: got 10, want 9"},
		{"when a b a\n  admit a n=1\nwhen a b\n  admit a n=9\nleft a n=8", "got 9 available, want 8"},
		{"for w in admit a n=1 | left a n=8\n  $w", "got 9 available, want 8"},
	} {
		failsWith(t, test.steps, test.want)
	}
}

// failsWith plays steps on the model, as a store that forgets no lease early, and expects them to
// fail with some words.
func failsWith(t *testing.T, steps, want string) {
	t.Helper()
	cases, err := parseCases("t.txt", "case x\nsystem n=10:slow-bucket,m=10:slow-bucket\n"+steps)
	if err != nil {
		t.Fatalf("%s: %v", steps, err)
	}
	h := ModelHarness(nil)
	h.NeverForgetsEarly = true
	got := Record(t, func(t T) { cases[0].Run(t, h) })
	if !got.Failed || !strings.Contains(strings.Join(got.Messages, "\n"), want) {
		t.Errorf("%s: got %q, want %q in it", steps, got.Messages, want)
	}
}
