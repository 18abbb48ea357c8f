package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/text"
)

// traceReader reads a trace: comma-separated values with a header.
type traceReader struct {
	*ReadOptions

	name    string
	csv     *csv.Reader
	bounds  *boundedReader
	columns columns
	names   *names
	calls   []Call
	line    int
	last    struct {
		atMS int64
		line int
		text []byte // as it was written
	}
	errs []error
}

// ReadTrace reads a trace: comma-separated values (RFC 4180, with LF or CRLF) with a header, in the
// order of their times unless they are to be sorted. It returns every call, or the first ten
// mistakes, joined: each names the file, the line, the column with its value, and the reason.
//
// It takes at most 1 GiB and 10,000,000 calls, and keeps about 40 bytes of each.
func ReadTrace(ctx context.Context, name string, r io.Reader, o *ReadOptions) (*Trace, error) {
	t := &traceReader{ReadOptions: o.withDefaults(), name: name, names: newNames()}
	t.bounds = &boundedReader{from: withoutMark(r), name: name, most: t.mostBytes, line: 1}
	t.csv = csv.NewReader(t.bounds)
	t.csv.FieldsPerRecord = -1
	t.csv.ReuseRecord = true
	if err := t.read(ctx); err != nil {
		return nil, err
	}
	if t.Sort {
		slices.SortFunc(t.calls, func(a, b Call) int { // no two have one line
			return cmp.Or(cmp.Compare(a.AtMS, b.AtMS), cmp.Compare(a.Line, b.Line))
		})
	}
	return &Trace{
		Name: name, Calls: t.calls, Callers: t.names.callers,
		EntityColumn: t.Entity, ModelColumn: t.Model, DurationColumn: t.Duration,
	}, nil
}

// withoutMark drops the mark of the byte order, with which some programs begin a file.
func withoutMark(r io.Reader) io.Reader {
	mark := []byte("\uFEFF")
	b := bufio.NewReaderSize(r, maxLine)
	if head, err := b.Peek(len(mark)); err == nil && bytes.Equal(head, mark) {
		_, _ = b.Discard(len(mark)) // it was seen
	}
	return b
}

func (t *traceReader) read(ctx context.Context) error {
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		fields, err := t.csv.Read()
		wrong, misread := errors.AsType[*csv.ParseError](err)
		switch {
		case errors.Is(err, io.EOF):
			return t.end()
		case misread:
			t.line = wrong.Line
			t.mistake("", "", fmt.Sprintf("at byte %d: %s", wrong.Column, quoteReason(wrong)))
		case err != nil:
			return errors.Join(append(t.errs, err)...)
		default:
			t.take(fields)
		}
		t.bounds.called, t.bounds.after = t.csv.InputOffset(), t.line
		headless := t.columns.width == 0 && len(t.errs) > 0
		if len(t.errs) >= maxMistakes || headless {
			t.errs = append(t.errs, fmt.Errorf("%s: what follows was not checked", t.name))
			return errors.Join(t.errs...)
		}
		if len(t.calls) > t.mostCalls {
			return fmt.Errorf("%s: has more than %s calls", t.name, text.FormatInt(int64(t.mostCalls)))
		}
	}
}

// end says what there is once everything was read.
func (t *traceReader) end() error {
	t.line = 1
	switch {
	case len(t.errs) > 0 || len(t.calls) > 0:
	case t.columns.width == 0:
		t.mistake("", "", "the file is empty: a trace begins with the line "+
			strings.Join([]string{t.Time, t.Input, t.Output}, ","))
	default:
		t.mistake("", "", "the trace has a header and no call")
	}
	return errors.Join(t.errs...)
}

// quoteReason is what a parser's error means.
func quoteReason(wrong *csv.ParseError) string {
	reason := "has a quote that is never closed, or closed before the field ends"
	if errors.Is(wrong, csv.ErrBareQuote) {
		reason = "has a quote within a field: quote the whole field"
	}
	if wrong.StartLine < wrong.Line {
		reason += fmt.Sprintf("; the call begins on line %d", wrong.StartLine)
	}
	return reason
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
func (t *traceReader) take(fields []string) {
	t.line, _ = t.csv.FieldPos(0)
	switch {
	case t.columns.width == 0:
		for _, reason := range t.columns.find(t.ReadOptions, fields) {
			t.mistake("header", strings.Join(fields, ","), reason)
		}
		if len(t.errs) > 0 {
			t.columns.width = 0 // no line can be read
		}
	case len(fields) != t.columns.width:
		t.mistake("line", strings.Join(fields, ","), fmt.Sprintf("has %s, not %d like the header",
			text.Plural(len(fields), "column", "columns"), t.columns.width))
	default:
		t.call(fields)
	}
}
