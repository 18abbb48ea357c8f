package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const traceHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n"

func TestReadTrace(t *testing.T) {
	t.Parallel()
	at := time.Date(2023, 11, 16, 18, 17, 3, 0, time.UTC).UnixMilli()
	for name, c := range map[string]struct {
		text string
		want []call
	}{
		"decimals, rounded down": {
			traceHeader + "2023-11-16 18:17:03,1,2\n2023-11-16 18:17:03.9999999,3,4\n",
			[]call{{2, at, 1, 2}, {3, at + 999, 3, 4}},
		},
		"no line feed at the end": {
			traceHeader + "2023-11-16 18:17:03.5,0,0", []call{{2, at + 500, 0, 0}},
		},
		"two calls at one instant": {
			traceHeader + "2023-11-16 18:17:03,1,2\n2023-11-16 18:17:03,3,4",
			[]call{{2, at, 1, 2}, {3, at, 3, 4}},
		},
		"the largest number": {
			traceHeader + "2023-11-16 18:17:03,9223372036854775807,0",
			[]call{{2, at, 9223372036854775807, 0}},
		},
		"the whole of the calendar": {
			traceHeader + "1970-01-01 00:00:00,1,1\n9999-12-31 23:59:59.9999999,1,1",
			[]call{{2, 0, 1, 1}, {3, 253402300799999, 1, 1}},
		},
		"a mark, CRLF, quotes, blank lines and other columns": {
			"\uFEFFx,\"GeneratedTokens\",TIMESTAMP,ContextTokens\r\n\r\n" +
				"\"a,\"\"b\",2,\"2023-11-16 18:17:03\",\"1\"\r\n",
			[]call{{3, at, 1, 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readTrace(t.Context(), "t.csv", strings.NewReader(c.text))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func TestReadTraceMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         `t.csv:1: the file is empty: a trace begins with the line ` + traceHeader[:39],
		"\n\n":                     `t.csv:1: the file is empty: a trace begins with the line ` + traceHeader[:39],
		traceHeader:                `t.csv:1: the trace ends without a call`,
		traceHeader + "\n\n":       `t.csv:3: the trace ends without a call`,
		"a,b\nc\n":                 `t.csv:1: header "a,b": has no column TIMESTAMP`,
		`a,"` + "\n":               `t.csv:1: line "a,\"": has a quote that is never closed`,
		traceHeader + "a\"b,1,1\n": `t.csv:2: line "a\"b,1,1": has a quote within a field: quote the whole field`,
		traceHeader + "1,2,3,4\n":  `t.csv:2: line "1,2,3,4": has 4 columns, not 3 like the header`,
		traceHeader + "1\n":        `t.csv:2: line "1": has 1 column, not 3 like the header`,
		traceHeader + "x,1,1\n":    `t.csv:2: TIMESTAMP "x": must be a time like 2023-11-16 18:17:03.9799600`,
		traceHeader + "2023-11-16 18:17:03.,1,1": `t.csv:2: TIMESTAMP "2023-11-16 18:17:03.": ` +
			`must be a time like 2023-11-16 18:17:03.9799600`,
		traceHeader + "2023-11-16 18:17:03.12345678,1,1": `t.csv:2: TIMESTAMP "2023-11-16 18:17:03.12345678": ` +
			`must be a time like 2023-11-16 18:17:03.9799600`,
		traceHeader + "2023-11-16 8:17:03.97,1,1": `t.csv:2: TIMESTAMP "2023-11-16 8:17:03.97": ` +
			`must be a time like 2023-11-16 18:17:03.9799600`,
		traceHeader + "2023-11-16 24:00:00,1,1": `t.csv:2: TIMESTAMP "2023-11-16 24:00:00": ` +
			`is no date and time of the calendar`,
		traceHeader + "1969-12-31 23:59:59,1,1":  `t.csv:2: TIMESTAMP "1969-12-31 23:59:59": must be 1970 or later`,
		traceHeader + "2023-11-16 18:17:03,+1,1": `t.csv:2: ContextTokens "+1": must be a whole number`,
		traceHeader + "2023-11-16 18:17:03,1, 1": `t.csv:2: GeneratedTokens " 1": must be a whole number`,
		traceHeader + "2023-11-16 18:17:03,1,-0": `t.csv:2: GeneratedTokens "-0": must not be negative`,
		traceHeader + "2023-11-16 18:17:03,9223372036854775808,1": `t.csv:2: ContextTokens ` +
			`"9223372036854775808": is more than 64 bits hold`,
		traceHeader + "2023-11-16 18:17:03,1," + strings.Repeat("é", 100): `t.csv:2: GeneratedTokens "` +
			strings.Repeat("é", 32) + `… (200 bytes)": must be a whole number`,
		traceHeader + strings.Repeat("x", maxTraceLine): `t.csv:2: the line is longer than 65,536 bytes`,
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			got, err := readTrace(t.Context(), "t.csv", strings.NewReader(text))
			first, _, _ := strings.Cut(fmt.Sprint(err), "\n")
			if len(got) > 0 || first != want {
				t.Errorf("got %d calls and %q, want %q", len(got), first, want)
			}
		})
	}
}

// TestReadTraceBounds: neither a file nor a stream may be larger than is allowed, and whoever waits
// for a stream can be interrupted.
func TestReadTraceBounds(t *testing.T) {
	t.Parallel()
	r := &traceReader{name: "t.csv", most: 100}
	lines := traceHeader + strings.Repeat("2023-11-16 18:17:03,1,1\n", 3)
	_, err := r.read(t.Context(), strings.NewReader(lines))
	if err == nil || err.Error() != "t.csv: is larger than 100 bytes" {
		t.Errorf("got %v, want a stream of 111 bytes refused", err)
	}
	boom := errors.New("boom")
	_, err = readTrace(t.Context(), "t.csv", io.MultiReader(strings.NewReader(lines), iotest.ErrReader(boom)))
	if !errors.Is(err, boom) {
		t.Errorf("got %v, want what the reader says", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = readTrace(gone, "t.csv", strings.NewReader(lines)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}

	sparse := filepath.Join(t.TempDir(), "sparse.csv")
	if err := os.WriteFile(sparse, []byte(traceHeader), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, maxTraceBytes+1); err != nil {
		t.Fatal(err)
	}
	got := runWeir(t, "replay", sparse, "--limits", "../../examples/limits.yaml")
	want := result{exitFailed, "", "weir: " + sparse + ": is larger than 1,073,741,824 bytes\n"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// FuzzParseTrace: a trace is refused with its name in front, or every call in it is in order and
// within bounds.
func FuzzParseTrace(f *testing.F) {
	f.Add([]byte(traceHeader + "2023-11-16 18:17:03.9799600,4808,10\n"))
	f.Add([]byte("\uFEFF\"TIMESTAMP\",ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03,1,\"2\"\r\n"))
	f.Add([]byte(traceHeader + "2023-02-29 00:00:00,-1,9223372036854775808\n,,\n\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		calls, err := readTrace(t.Context(), "t.csv", bytes.NewReader(data))
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "t.csv:") {
					t.Errorf("got the error %q, want the file's name in each line", err)
				}
			}
			return
		}
		if len(calls) == 0 {
			t.Error("got no calls and no error")
		}
		last := call{line: 1}
		for _, c := range calls {
			if c.line <= last.line || c.atMS < last.atMS || c.input < 0 || c.output < 0 || c.tokens() < 0 {
				t.Errorf("got %+v after %+v", c, last)
			}
			last = c
		}
	})
}
