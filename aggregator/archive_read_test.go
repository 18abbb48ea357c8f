package aggregator_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/aggregator"
)

// goodLine is a line of an archive.
const goodLine = `{"event_id":"01KN32SPM060R30C1G60R30C1G","namespace":"default","namespace_id":"ns",` +
	`"entity_id":"acme","action":"limits_set","timestamp":"2026-03-31T23:50:00Z","principal":null,` +
	`"resource":null,"details":{"n":1}}`

// compressed returns text in gzip.
func compressed(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReadArchiveDamage reads objects that are damaged.
func TestReadArchiveDamage(t *testing.T) {
	t.Parallel()
	whole := compressed(t, goodLine+"\n"+goodLine+"\n")
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1
	for _, c := range []struct {
		name   string
		body   []byte
		events int
		line   int // of the damage; 0 for the object
		words  string
	}{
		{"fine", whole, 2, -1, ""},
		{"expanded", []byte(goodLine + "\r\n\n" + goodLine), 2, -1, ""},
		{"two parts", append(compressed(t, goodLine+"\n"), compressed(t, goodLine)...), 2, -1,
			""},
		{"empty", nil, 0, 0, "is empty"},
		{"not gzip", []byte("PAR1"), 0, 0, "not compressed with gzip"},
		{"cut", whole[:len(whole)-9], 2, 0, "unexpected EOF"},
		{"wrong sum", flipped, 2, 0, "after line 2: gzip: invalid checksum"},
		{"no JSON", compressed(t, "x\n"+goodLine), 1, 1, "line 1: is not an event"},
		{"two values", compressed(t, goodLine+"\n"+goodLine+"{}\n"+goodLine), 2, 2,
			"something follows"},
		{"no action", compressed(t, strings.Replace(goodLine, "limits_set", "", 1)), 0, 1,
			"action is missing"},
		{"no time", compressed(t, strings.Replace(goodLine, "2026-03-31T", "", 1)), 0, 1,
			"timestamp"},
		{"a list", compressed(t, "[1]\n"), 0, 1, "is not an event"},
		{"no details", compressed(t, strings.Replace(goodLine, `{"n":1}`, `[]`, 1)), 0, 1,
			"details"},
		{"typed", compressed(t, strings.Replace(goodLine, `{"n":1}`,
			`{},"typed":{"details":{"M":{"a":{"X":""}}}}`, 1)), 0, 1, "typed"},
		{"typed nothing", compressed(t, strings.Replace(goodLine, `{"n":1}`, `{},"typed":{}`, 1)),
			0, 1, "no details"},
		{"a long line", compressed(t, goodLine+"\n"+strings.Repeat(" ", 9<<20)+"\n"+goodLine), 2,
			2, "longer than 8 MiB"},
		{"a long last line", compressed(t, goodLine+"\n"+strings.Repeat(" ", 9<<20)), 1, 2,
			"longer than 8 MiB"},
	} {
		events, damage := 0, []error(nil)
		for _, err := range aggregator.ReadArchive(bytes.NewReader(c.body)) {
			if err == nil {
				events++
			} else {
				damage = append(damage, err)
			}
		}
		if events != c.events || (c.line < 0) != (len(damage) == 0) || len(damage) > 1 {
			t.Errorf("%s: got %d events and %v", c.name, events, damage)
			continue
		}
		if c.line < 0 {
			continue
		}
		line, _ := errors.AsType[*aggregator.LineError](damage[0])
		if !strings.Contains(damage[0].Error(), c.words) || (line != nil) != (c.line > 0) ||
			line != nil && line.Line != c.line {
			t.Errorf("%s: got %v", c.name, damage[0])
		}
	}
}

// blanks is a text of blank lines with a number of bytes.
type blanks struct{ left int64 }

func (b *blanks) Read(p []byte) (int, error) {
	n := min(int64(len(p)), b.left)
	for i := range p[:n] {
		p[i] = ' '
	}
	if n > 0 {
		p[n-1] = '\n'
	}
	if b.left -= n; n == 0 {
		return 0, io.EOF
	}
	return int(n), nil
}

// TestReadArchiveBomb reads an object of some megabytes that expands to half a gigabyte.
func TestReadArchiveBomb(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(z, &blanks{aggregator.MaxArchiveBytes * 2}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var last error
	for e, err := range aggregator.ReadArchive(&b) {
		if last = err; e != nil {
			t.Errorf("got %+v", e)
		}
	}
	if last == nil || !strings.Contains(last.Error(), "expands to more than 256 MiB") {
		t.Errorf("got %v", last)
	}
}

// FuzzReadArchive checks that no object makes the reader panic or repeat itself, and that each
// line is an event or an error.
func FuzzReadArchive(f *testing.F) {
	f.Add([]byte(goodLine+"\n"+goodLine), true)
	f.Add([]byte(strings.Replace(goodLine, `{"n":1}`,
		`{"n":1e400},"typed":{"details":{"M":{"a":{"BS":["AA=="]}}}}`, 1)), false)
	f.Add([]byte(`{"error":"x","item":{"PK":{"S":"a"}}}`), true)
	f.Add(compressed(f, goodLine), false)
	f.Fuzz(func(t *testing.T, data []byte, pack bool) {
		lines := bytes.Count(data, []byte("\n")) + 1
		if pack {
			data = compressed(t, string(data))
		}
		read := func() (events, bad int, ends error) {
			for e, err := range aggregator.ReadArchive(bytes.NewReader(data)) {
				line, isLine := errors.AsType[*aggregator.LineError](err)
				switch {
				case ends != nil:
					t.Fatal("something follows the last error")
				case err == nil && (e.ID == "" || e.Entity == "" || e.Action == ""):
					t.Fatalf("an event without its parts: %+v", e)
				case err == nil:
					events++
				case isLine && (line.Line < 1 || pack && line.Line > lines):
					t.Fatalf("there is no line %d", line.Line)
				case isLine:
					bad++
				default:
					ends = err
				}
			}
			return events, bad, ends
		}
		events, bad, ends := read()
		again, badAgain, _ := read()
		if events != again || bad != badAgain || pack && (events+bad > lines || ends != nil &&
			len(data) > 0 && lines < 1) {
			t.Errorf("got %d and %d, then %d and %d", events, bad, again, badAgain)
		}
	})
}
