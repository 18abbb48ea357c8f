package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a trace.
const (
	maxTraceBytes    = 1 << 30
	maxTraceLine     = 64 << 10
	maxTraceMistakes = 10
)

// The columns of a trace. Others may stand beside them.
const (
	timeColumn   = "TIMESTAMP"
	inputColumn  = "ContextTokens"
	outputColumn = "GeneratedTokens"
)

// call is one line of a trace.
type call struct {
	line          int
	atMS          int64 // Unix milliseconds
	input, output int64 // tokens; their sum fits too
}

func (c *call) tokens() int64 { return c.input + c.output }

// traceReader reads a trace: comma-separated values with a header, in the order of their times.
type traceReader struct {
	name    string
	most    int64 // bytes
	line    int
	columns [3]int // where time, input and output stand
	width   int
	// headless is true where the header lacks a column, so that no line can be read.
	headless bool
	last     time.Time
	calls    []call
	errs     []error
}

// readTrace reads a trace of at most 1 GiB. It returns every call, or the first ten mistakes,
// joined: each names the file, the line, the field with its value, and the reason.
func readTrace(ctx context.Context, name string, r io.Reader) ([]call, error) {
	t := &traceReader{name: name, most: maxTraceBytes}
	return t.read(ctx, r)
}

func (t *traceReader) read(ctx context.Context, r io.Reader) ([]call, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxTraceLine)
	size := int64(0)
	for lines.Scan() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t.line++
		text := lines.Text()
		if size += int64(len(text)) + 1; size > t.most {
			return nil, tooLarge(t.name, t.most)
		}
		t.take(text)
		if len(t.errs) >= maxTraceMistakes || t.headless {
			t.errs = append(t.errs, fmt.Errorf("%s: what follows was not checked", t.name))
			return nil, errors.Join(t.errs...)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		t.line++
		t.mistake("", "", fmt.Sprintf("the line is longer than %s bytes", thousands(maxTraceLine)))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", t.name, err)
	case t.width == 0 && len(t.errs) == 0:
		t.line = 1
		t.mistake("", "", "the file is empty: a trace begins with the line "+
			strings.Join([]string{timeColumn, inputColumn, outputColumn}, ","))
	case len(t.calls) == 0 && len(t.errs) == 0:
		t.mistake("", "", "the trace ends without a call")
	}
	return t.calls, errors.Join(t.errs...)
}

// mistake notes what is wrong with the line, or with a field of it.
func (t *traceReader) mistake(field, value, reason string) {
	where := fmt.Sprintf("%s:%d: ", t.name, t.line)
	if field != "" {
		where += fmt.Sprintf("%s %q: ", field, shorten(value))
	}
	t.errs = append(t.errs, errors.New(where+reason))
}

// take reads one line.
func (t *traceReader) take(text string) {
	if t.line == 1 {
		text = strings.TrimPrefix(text, "\uFEFF")
	}
	if text == "" {
		return
	}
	fields, reason := splitFields(text)
	switch {
	case reason != "":
		t.mistake("line", text, reason)
	case t.width == 0:
		t.header(fields)
	case len(fields) != t.width:
		t.mistake("line", text, fmt.Sprintf("has %s, not %d like the header",
			plural(len(fields), "column", "columns"), t.width))
	default:
		t.call(fields)
	}
}

// header finds the columns.
func (t *traceReader) header(fields []string) {
	t.width = len(fields)
	for i, name := range []string{timeColumn, inputColumn, outputColumn} {
		t.columns[i] = slices.Index(fields, name)
		switch {
		case t.columns[i] < 0:
			t.mistake("header", strings.Join(fields, ","), "has no column "+name)
		case slices.Contains(fields[t.columns[i]+1:], name):
			t.mistake("header", strings.Join(fields, ","), "has the column "+name+" twice")
		}
	}
	t.headless = len(t.errs) > 0
}

func (t *traceReader) call(fields []string) {
	known := len(t.errs)
	at, reason := parseTraceTime(fields[t.columns[0]])
	switch {
	case reason != "":
		t.mistake(timeColumn, fields[t.columns[0]], reason)
	case at.Before(t.last):
		t.mistake(timeColumn, fields[t.columns[0]], "is before the call above it")
	default:
		t.last = at
	}
	input := t.tokens(inputColumn, fields[t.columns[1]])
	output := t.tokens(outputColumn, fields[t.columns[2]])
	if input+output < 0 { // both are at least 0, so the sum is past int64
		t.mistake(outputColumn, fields[t.columns[2]], "makes more than 64 bits hold, with "+inputColumn)
	}
	if len(t.errs) == known {
		t.calls = append(t.calls, call{t.line, at.UnixMilli(), input, output})
	}
}

func (t *traceReader) tokens(field, text string) int64 {
	n, reason := parseTokens(text)
	if reason != "" {
		t.mistake(field, text, reason)
	}
	return n
}

// parseTokens reads a whole number, or says what is wrong with it.
func parseTokens(text string) (n int64, reason string) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, "must be a whole number"
	}
	if digits != text {
		return 0, "must not be negative"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, "is more than 64 bits hold"
	}
	return n, ""
}

// parseTraceTime reads "2023-11-16 18:17:03.9799600", with up to seven decimals, as UTC, or says
// what is wrong with it.
func parseTraceTime(text string) (at time.Time, reason string) {
	const layout = "2006-01-02 15:04:05"
	const form = "must be a time like 2023-11-16 18:17:03.9799600"
	seconds, decimals, dotted := strings.Cut(text, ".")
	if len(seconds) != len(layout) || dotted && (decimals == "" || len(decimals) > 7) ||
		strings.Trim(decimals, "0123456789") != "" {
		return time.Time{}, form
	}
	at, err := time.Parse(layout, text)
	switch {
	case err != nil && strings.Contains(err.Error(), "out of range"):
		return time.Time{}, "is no date and time of the calendar"
	case err != nil:
		return time.Time{}, form
	case at.Year() < 1970:
		return time.Time{}, "must be 1970 or later"
	}
	return at, ""
}
