package manifest_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
)

// TestMistakes compares every message with testdata/mistakes.txt, which has the cases. With
// WEIR_UPDATE_GOLDEN=1 it writes the messages to the file, to be reviewed before they are
// committed.
func TestMistakes(t *testing.T) {
	t.Parallel()
	head, cases := readMistakes(t)
	var updated strings.Builder
	updated.WriteString(head)
	for _, c := range cases {
		got := "nothing wrong"
		if _, err := manifest.Parse("limits.yaml", []byte(c.text)); err != nil {
			got = err.Error()
		}
		fmt.Fprintf(&updated, "=== %s\n%s>>>\n%s\n", c.name, c.text, got)
		if got != c.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.name, got, c.want)
		}
		checkErrors(t, c.name, c.text)
	}
	if os.Getenv("WEIR_UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(mistakesFile, []byte(updated.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const mistakesFile = "testdata/mistakes.txt"

type mistakeCase struct{ name, text, want string }

// readMistakes returns the heading of the file and its cases.
func readMistakes(t testing.TB) (head string, cases []mistakeCase) {
	t.Helper()
	data, err := os.ReadFile(mistakesFile)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(data), "=== ")
	for section := range strings.SplitSeq(rest, "\n=== ") {
		name, body, _ := strings.Cut(section, "\n")
		text, want, ok := cutMark(body)
		if !ok {
			t.Fatalf("%s: no >>> in case %q", mistakesFile, name)
		}
		cases = append(cases, mistakeCase{name, text, strings.TrimSpace(want)})
	}
	return head, cases
}

// parseSeeds returns the files that the fuzzer starts with.
func parseSeeds(t testing.TB) []string {
	t.Helper()
	var seeds []string
	_, cases := readMistakes(t)
	for _, c := range cases {
		seeds = append(seeds, c.text)
	}
	for _, file := range []string{"testdata/design.yaml", "../examples/limits.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, string(data))
	}
	return seeds
}

// cutMark divides a case into the limits file and the messages.
func cutMark(body string) (text, want string, ok bool) {
	if want, ok := strings.CutPrefix(body, ">>>"); ok {
		return "", want, true
	}
	text, want, ok = strings.Cut(body, "\n>>>")
	return text + "\n", want, ok
}

// checkErrors checks what holds for every file that is refused: all errors are typed, have
// positions within the text, and are sorted by position.
func checkErrors(t *testing.T, name, text string) {
	t.Helper()
	m, err := manifest.Parse(name, []byte(text))
	if err == nil {
		return
	}
	if m != nil {
		t.Errorf("%s: a manifest beside an error", name)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%s: not joined: %v", name, err)
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
	lines := strings.Split(text, "\n")
	last := &manifest.Error{}
	for _, one := range joined.Unwrap() {
		e, ok := one.(*manifest.Error)
		if !ok {
			t.Fatalf("%s: got %T, want *manifest.Error", name, one)
		}
		we, ok := errors.AsType[*weir.Error](e)
		if !ok || !errors.Is(e, weir.Invalid) || we.Reason == "" {
			t.Errorf("%s: got %#v inside, want an invalid *weir.Error with a reason", name, e.Err)
		}
		if e.Line < 1 || e.Line > len(lines) || e.Column < 1 ||
			e.Column > len([]rune(lines[e.Line-1]))+1 {
			t.Errorf("%s: %v lies outside the text", name, e)
		}
		if e.Line < last.Line || e.Line == last.Line && e.Column < last.Column {
			t.Errorf("%s: %v comes after %v", name, e, last)
		}
		if message := e.Error(); strings.ContainsAny(message, "\n\t") || len(message) > 1000 {
			t.Errorf("%s: message %q", name, message)
		}
		last = e
	}
}
