package conformance_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/conformance"
)

const someScript = `start 2026-03-29T00:30:00.5Z
option lifetime 5m0s
option memory 1m0s
option size 4
option depth 2
option limits rpm=5:bucket
set base
system rpm=60:bucket/10/1s
resource gpt par=3:concurrency/30s
entity acme parent org cascade
limits acme _default_ usd=5:budget/month/America/Havana
limits acme gpt tpm=500:bucket,win=2:window/1m0s:shadow
entity org
set none
run
advance 1s
reserve new acme/gpt tpm=1
`

func TestScriptText(t *testing.T) {
	t.Parallel()
	s, err := conformance.ParseScript("# a comment\n\n" + someScript)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.String(); got != someScript {
		t.Errorf("got\n%s\nwant\n%s", got, someScript)
	}
	if got := s.Sets[0].Definitions.Entities["acme"]; got.Parent != "org" || !got.Cascade {
		t.Errorf("acme is %+v, want a child of org that cascades", got)
	}
	if got := s.Setup().Definitions; got != s.Sets[0].Definitions {
		t.Errorf("a world begins with %+v, want the first set", got)
	}
}

func TestParseScriptRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"start yesterday", "option", "option size x", "option colour 3", "system a=1:bucket", "set",
		"set a\nlimits acme gpt a=1:bucket", "set a\nentity a child b", "set a\ncolour red",
		"run\ndance 1s",
	} {
		if _, err := conformance.ParseScript(text); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: got error %v, want one with the line", text, err)
		}
	}
}

func TestGeneratedScriptsAreText(t *testing.T) {
	t.Parallel()
	h := conformance.ModelHarness(nil)
	for seed := range uint64(20) {
		s := conformance.Generate(t, &h, seed, 200)
		again, err := conformance.ParseScript(s.String())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if again.String() != s.String() {
			t.Errorf("seed %d: the text of a script is not its own", seed)
		}
		for i := range s.Ops {
			if got, want := again.Ops[i].String(), s.Ops[i].String(); got != want {
				t.Errorf("seed %d: got %s, want %s", seed, got, want)
			}
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add(someScript)
	f.Add("set a\nentity \"x y\"\nlimits \"x y\" \"\" a=1:bucket\nrun\nstatus a -\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := conformance.ParseScript(text)
		if err != nil {
			return
		}
		again, err := conformance.ParseScript(s.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", text, s, err)
		}
		if again.String() != s.String() || !reflect.DeepEqual(again.Ops, s.Ops) {
			t.Errorf("%q became %q, then %q", text, s, again)
		}
	})
}
