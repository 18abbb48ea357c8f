package testkit

import (
	"os"
	"strings"
	"testing"
)

// An environment has the given packages at the given versions, and none of the user's.
func TestPython(t *testing.T) {
	t.Parallel()
	v := Python(t, "idna==3.10")
	got := Run(t, v.Command(t.Context(), "python", "-c",
		"import idna, sys; print(idna.__version__, sys.prefix != sys.base_prefix)"))
	if strings.TrimSpace(got) != "3.10 True" {
		t.Errorf("got %q, want version 3.10 in an environment of its own", got)
	}
	if again := Python(t, "idna==3.10"); again.Dir != v.Dir {
		t.Errorf("got %s and %s, want one environment for one list", v.Dir, again.Dir)
	}
	if _, err := os.Stat(v.Dir); err != nil {
		t.Error(err)
	}
}

func TestVenvKey(t *testing.T) {
	t.Parallel()
	key := venvKey("3.12.1 /usr", []string{"a==1", "b==2"})
	for _, c := range []struct {
		version  string
		packages []string
		same     bool
	}{
		{"3.12.1 /usr", []string{"b==2", "a==1"}, true},
		{"3.12.2 /usr", []string{"a==1", "b==2"}, false},
		{"3.12.1 /usr", []string{"a==1", "b==3"}, false},
		{"3.12.1 /usr", []string{"a==1"}, false},
	} {
		if got := venvKey(c.version, c.packages); (got == key) != c.same {
			t.Errorf("%s %v: got the same name: %v, want %v", c.version, c.packages, got == key, c.same)
		}
	}
}
