package chart

import (
	"os"
	"strings"
	"testing"
)

// TestRefused checks that mistakes in values are refused, with a message that names the value.
func TestRefused(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	values, n := "", 0
	for line := range strings.Lines(string(text)) {
		want, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			values += line
			continue
		}
		n++
		if _, _, err := render(t, "weir", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
		values = ""
	}
	if n == 0 {
		t.Error("there are no mistakes")
	}
}

// TestLongNames checks that a long name of a release gives names that are short enough.
func TestLongNames(t *testing.T) {
	t.Parallel()
	release := strings.Repeat("release-", 6) + "12345" // Helm allows 53 characters
	files, _, err := render(t, release, "{}")
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{texts: map[string]string{}}
	for name, text := range files {
		o.add(t, name, text)
	}
	for _, m := range o.all {
		if n := len(m.GetName()); n > 63 || strings.HasSuffix(m.GetName(), "-") {
			t.Errorf("%s has %d characters", m.GetName(), n)
		}
	}
}
