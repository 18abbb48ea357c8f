package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const traceHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n"

// callOf returns a call of which the trace does not have the duration.
func callOf(line int, atMS, input, output int64) Call {
	return Call{AtMS: atMS, Input: input, Output: output, Line: int32(line), LastsMS: NoDuration}
}

func TestReadTrace(t *testing.T) {
	t.Parallel()
	at := time.Date(2023, 11, 16, 18, 17, 3, 0, time.UTC).UnixMilli()
	for name, c := range map[string]struct {
		text string
		want []Call
	}{
		"decimals, rounded down": {
			traceHeader + "2023-11-16 18:17:03,1,2\n2023-11-16 18:17:03.9999999,3,4\n",
			[]Call{callOf(2, at, 1, 2), callOf(3, at+999, 3, 4)},
		},
		"no line feed at the end": {
			traceHeader + "2023-11-16 18:17:03.5,0,0", []Call{callOf(2, at+500, 0, 0)},
		},
		"two calls at one instant": {
			traceHeader + "2023-11-16 18:17:03,1,2\n2023-11-16 18:17:03,3,4",
			[]Call{callOf(2, at, 1, 2), callOf(3, at, 3, 4)},
		},
		"the largest number": {
			traceHeader + "2023-11-16 18:17:03,9223372036854775807,0",
			[]Call{callOf(2, at, 9223372036854775807, 0)},
		},
		"the whole of the calendar": {
			traceHeader + "1970-01-01 00:00:00,1,1\n9999-12-31 23:59:59.9999999,1,1",
			[]Call{callOf(2, 0, 1, 1), callOf(3, 253402300799999, 1, 1)},
		},
		"a time of RFC 3339, and zones": {
			traceHeader + "2023-11-16T18:17:03Z,1,2\n2023-11-16T19:17:03.123456789+01:00,3,4\n" +
				"2023-11-16 13:17:04-05:00,5,6\n",
			[]Call{callOf(2, at, 1, 2), callOf(3, at+123, 3, 4), callOf(4, at+1000, 5, 6)},
		},
		"a quoted field over two lines": {
			"x," + traceHeader + "\"a\nb\",2023-11-16 18:17:03,1,2\n\"c\",2023-11-16 18:17:03,3,4\n",
			[]Call{callOf(2, at, 1, 2), callOf(4, at, 3, 4)},
		},
		"a mark, CRLF, quotes, blank lines and other columns": {
			"\uFEFFx,\"GeneratedTokens\",TIMESTAMP,ContextTokens\r\n\r\n" +
				"\"a,\"\"b\",2,\"2023-11-16 18:17:03\",\"1\"\r\n",
			[]Call{callOf(3, at, 1, 2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(t.Context(), "t.csv", strings.NewReader(c.text), nil)
			if err != nil || !reflect.DeepEqual(got.Calls, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func TestReadTraceMistakes(t *testing.T) {
	t.Parallel()
	const (
		at     = "2023-11-16 18:17:03,"
		listed = "; --time-column names one of a, b"
		empty  = `t.csv:1: the file is empty: a trace begins with the line ` +
			"TIMESTAMP,ContextTokens,GeneratedTokens"
		callless = `t.csv:1: the trace has a header and no call`
	)
	for text, want := range map[string]string{
		"":                   empty,
		"\n\n":               empty,
		traceHeader:          callless,
		traceHeader + "\n\n": callless,
		"a,b\nc\n":           `t.csv:1: header "a,b": has no column TIMESTAMP` + listed,
		"TIMESTAMP," + traceHeader: `t.csv:1: header "TIMESTAMP,` + traceHeader[:39] +
			`": has the column TIMESTAMP twice`,
		`a,"` + "\n": `t.csv:1: at byte 5: has a quote that is never closed, or closed before the field ends`,
		traceHeader + "\"a,1,1\nb,2,2\n": `t.csv:3: at byte 7: has a quote that is never closed, or closed ` +
			"before the field ends; the call begins on line 2",
		"TIMESTAMP;ContextTokens;GeneratedTokens\n1;2;3\n": `t.csv:1: header ` +
			`"TIMESTAMP;ContextTokens;GeneratedTokens": has semicolons between its columns: use commas`,
		"TIMESTAMP\tContextTokens\n": `t.csv:1: header "TIMESTAMP\tContextTokens": ` +
			"has tabs between its columns: use commas",
		"\xff\xfea\x00,\x00b\x00\n\x00": `t.csv:1: header "�a\x00,\x00b\x00": ` +
			"is not UTF-8 text: save the file as UTF-8",
		"\x00a,b,c\n":                            `t.csv:1: header "\x00a,b,c": is not UTF-8 text: save the file as UTF-8`,
		traceHeader + "a\"b,1,1\n":               `t.csv:2: at byte 2: has a quote within a field: quote the whole field`,
		traceHeader + "1,2,3,4\n":                `t.csv:2: line "1,2,3,4": has 4 columns, not 3 like the header`,
		traceHeader + "1\n":                      `t.csv:2: line "1": has 1 column, not 3 like the header`,
		traceHeader + "x,1,1\n":                  `t.csv:2: TIMESTAMP "x": ` + notTime,
		traceHeader + "2023-11-16 18:17:03.,1,1": `t.csv:2: TIMESTAMP "2023-11-16 18:17:03.": ` + notTime,
		traceHeader + "2023-11-16 18:17:03.1234567890,1,1": `t.csv:2: TIMESTAMP ` +
			`"2023-11-16 18:17:03.1234567890": ` + notTime,
		traceHeader + "2023-11-16 8:17:03.97,1,1": `t.csv:2: TIMESTAMP "2023-11-16 8:17:03.97": ` + notTime,
		traceHeader + "2023-11-16 24:00:00,1,1":   `t.csv:2: TIMESTAMP "2023-11-16 24:00:00": ` + notCalendar,
		traceHeader + "1969-12-31 23:59:59,1,1":   `t.csv:2: TIMESTAMP "1969-12-31 23:59:59": ` + notInYears,
		traceHeader + "253402300800,1,1":          `t.csv:2: TIMESTAMP "253402300800": ` + notInYears,
		traceHeader + "-1,1,1":                    `t.csv:2: TIMESTAMP "-1": ` + notTime,
		traceHeader + "1e9,1,1":                   `t.csv:2: TIMESTAMP "1e9": ` + notTime,
		traceHeader + "9223372036854775808,1,1":   `t.csv:2: TIMESTAMP "9223372036854775808": ` + over64Bits,
		traceHeader + at + "+1,1":                 `t.csv:2: ContextTokens "+1": must be a whole number`,
		traceHeader + at + "1, 1":                 `t.csv:2: GeneratedTokens " 1": must be a whole number`,
		traceHeader + at + "1,-0":                 `t.csv:2: GeneratedTokens "-0": must not be negative`,
		traceHeader + at + "9223372036854775808,1": `t.csv:2: ContextTokens ` +
			`"9223372036854775808": does not fit in 64 bits`,
		traceHeader + at + "1," + strings.Repeat("é", 100): `t.csv:2: GeneratedTokens "` +
			strings.Repeat("é", 32) + `… (200 bytes)": must be a whole number`,
		traceHeader + at + "1,1\n2023-11-16 18:17:02.9,1,1\n": `t.csv:3: TIMESTAMP "2023-11-16 18:17:02.9": ` +
			"is before 2023-11-16 18:17:03 on line 2; --sort sorts the calls by time",
		traceHeader + strings.Repeat("x", maxLine+1): `t.csv:2: the line is longer than 65,536 bytes`,
		traceHeader + `"` + strings.Repeat("\n", maxRecord): `t.csv:1: the call that begins here is longer than ` +
			`1,048,576 bytes: a quote may never be closed`,
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			_, err := Read(t.Context(), "t.csv", strings.NewReader(text), nil)
			if first, _, _ := strings.Cut(fmt.Sprint(err), "\n"); first != want {
				t.Errorf("got %q, want %q", first, want)
			}
		})
	}
}

// TestReadTraceBounds checks that the size and the number of calls are bounded for files and
// streams, and that an interrupt ends the wait for a stream.
func TestReadTraceBounds(t *testing.T) {
	t.Parallel()
	lines := traceHeader + strings.Repeat("2023-11-16 18:17:03,1,1\n", 3)
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{mostBytes: 111}, "t.csv: is larger than 111 bytes"},
		{Options{mostBytes: 112}, ""},
		{Options{mostCalls: 2}, "t.csv: has more than 2 calls"},
		{Options{mostCalls: 3}, ""},
	} {
		_, err := Read(t.Context(), "t.csv", strings.NewReader(lines), &c.options)
		if said := fmt.Sprint(err); said != c.want && (c.want != "" || err != nil) {
			t.Errorf("%+v: got %v, want %q", c.options, err, c.want)
		}
	}
	boom := errors.New("boom")
	broken := io.MultiReader(strings.NewReader(lines), iotest.ErrReader(boom))
	if _, err := Read(t.Context(), "t.csv", broken, nil); !errors.Is(err, boom) {
		t.Errorf("got %v, want what the reader says", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Read(gone, "t.csv", strings.NewReader(lines), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}

// FuzzParseTrace checks that a trace is refused with an error that begins with its name, or that
// all its calls are in order and within bounds.
func FuzzParseTrace(f *testing.F) {
	f.Add([]byte(traceHeader + "2023-11-16 18:17:03.9799600,4808,10\n"))
	f.Add([]byte("\uFEFF\"TIMESTAMP\",ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03,1,\"2\"\r\n"))
	f.Add([]byte(traceHeader + "2023-02-29 00:00:00,-1,9223372036854775808\n,,\n\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := Read(t.Context(), "t.csv", bytes.NewReader(data), nil)
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "t.csv:") {
					t.Errorf("got the error %q, want the file's name in each line", err)
				}
			}
			return
		}
		if len(trace.Calls) == 0 {
			t.Error("got no calls and no error")
		}
		last := Call{Line: 1}
		for _, c := range trace.Calls {
			if c.Line <= last.Line || c.AtMS < last.AtMS || c.AtMS > MaxAtMS || c.Input < 0 ||
				c.Output < 0 || c.Tokens() < 0 {
				t.Errorf("got %+v after %+v", c, last)
			}
			last = c
		}
	})
}
