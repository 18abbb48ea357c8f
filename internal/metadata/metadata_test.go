package metadata_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/metadata"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	m, err := metadata.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// TestEqual checks that numbers are compared by their value, and texts as they are.
func TestEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{}`, `{}`, true},
		{`{"a":1.50}`, `{"a":1.5}`, true},
		{`{"a":[1e2,{"b":-0}]}`, `{"a":[100,{"b":0.0}]}`, true},
		{`{"a":100000000000000000000}`, `{"a":1E+20}`, true},
		{`{"a":15}`, `{"a":1.5}`, false},
		{`{"a":-1}`, `{"a":1}`, false},
		{`{"a":10}`, `{"a":1}`, false},
		{`{"a":"1.50"}`, `{"a":"1.5"}`, false},
		{`{"a":"1"}`, `{"a":1}`, false},
		{`{"a":null}`, `{}`, false},
	} {
		for _, got := range []bool{
			metadata.Equal(parse(t, c.a), parse(t, c.b)), metadata.Equal(parse(t, c.b), parse(t, c.a)),
		} {
			if got != c.same {
				t.Errorf("%s and %s: got %v, want %v", c.a, c.b, got, c.same)
			}
		}
	}
}

// TestRepeatedNames refuses objects that have a name twice, of which one value would be lost.
func TestRepeatedNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"a":2}`:                       ".a is given twice",
		`{"a":1,"\u0061":1}`:                  ".a is given twice",
		`{"a":[0,{"b":{"c":1,"d":2,"c":3}}]}`: ".a[1].b.c is given twice",
		`{"a":{"a":{"a":[]}},"b":[{"a":1},{"a":1}],"c":{"b":"a"}}`: "",
	} {
		_, err := metadata.Parse([]byte(text))
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestMistakesOfValue checks that the reason names the place within the value.
func TestMistakesOfValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"a":2}`: ".a is given twice",
		`[{"":1}]`:      "[0] has a name that is empty or not valid UTF-8",
		`{"":1}`:        "has a name that is empty or not valid UTF-8",
	} {
		if _, err := metadata.ParseValue([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if v, err := metadata.ParseValue([]byte(`1.50`)); v != json.Number("1.50") || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
}

// TestDepth checks how deep metadata may be nested: what is written may be in the audit too, and
// what is read is not.
func TestDepth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lists           int
		written, isRead bool
	}{{29, true, true}, {30, false, true}, {31, false, false}} {
		text := strings.Repeat("[", c.lists) + "1" + strings.Repeat("]", c.lists)
		var list any
		if err := json.Unmarshal([]byte(strings.Replace(text, "1", `"x"`, 1)), &list); err != nil {
			t.Fatal(err)
		}
		m := map[string]any{"a": list}
		if _, _, reason := metadata.Normalize(m); (reason == "") != c.written {
			t.Errorf("%d lists, to write: got %q", c.lists, reason)
		}
		if _, _, reason := metadata.Plain(m); (reason == "") != c.isRead {
			t.Errorf("%d lists, to read: got %q", c.lists, reason)
		}
	}
}
