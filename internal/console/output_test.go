package console

import (
	"bytes"
	"strings"
	"testing"
)

// TestPrintCSV checks quotes, and that no text is a formula.
func TestPrintCSV(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &App{Streams: Streams{Out: &out}}
	if err := a.PrintCSV([][]string{
		{"name", "units"}, {`say "a, b"`, "-5"}, {"=1+1", "+7"}, {"-", "-5x"}, {"@x", "\ty"},
		{"two\nlines", ""}, {"\u65e5\u672c", "9223372036854775807"},
	}); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		`name,units`, `"say ""a, b""",-5`, `'=1+1,+7`, `'-,'-5x`, `'@x,'	y`, "\"two\nlines\",",
		"\u65e5\u672c,9223372036854775807", "",
	}, "\n")
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
