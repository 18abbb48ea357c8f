package trace

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

	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
	"github.com/weir-limiter/weir/internal/text"
)

// traceReader reads a trace: comma-separated values with a header.
type traceReader struct {
	*Options

	name    string
	csv     *csv.Reader
	bounds  *boundedReader
	columns columns

	entities, resources *numbers[string]
	callers             *numbers[[2]int32] // pairs of an entity and a resource

	calls []Call
	line  int
	last  struct {
		atMS int64
		line int
		text []byte // as it was written
	}
	errs []error
}

// Read reads a trace: comma-separated values (RFC 4180, with LF or CRLF) with a header, in the
// order of their times unless the options say to sort them. It returns every call, or the first ten
// mistakes, joined. Each mistake names the file, the line, the column with its value, and the
// reason.
//
// A trace may have 1 GiB and 10,000,000 calls. Read keeps about 40 bytes of each call.
func Read(ctx context.Context, name string, r io.Reader, o *Options) (*Trace, error) {
	t := &traceReader{
		Options: o.withDefaults(), name: name,
		entities: newNumbers[string](MaxEntities), resources: newNumbers[string](maxResources),
		callers: newNumbers[[2]int32](MaxEntities),
	}
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
		Name: name, Calls: t.calls, Callers: t.pairs(),
		EntityColumn: t.Entity, ModelColumn: t.Model, DurationColumn: t.Duration,
	}, nil
}

// withoutMark drops the byte order mark that some programs write at the beginning of a file.
func withoutMark(r io.Reader) io.Reader {
	mark := []byte("\uFEFF")
	b := bufio.NewReaderSize(r, maxLine)
	if head, err := b.Peek(len(mark)); err == nil && bytes.Equal(head, mark) {
		_, _ = b.Discard(len(mark)) // Peek has seen it
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
			t.readRow(fields)
		}
		t.bounds.called, t.bounds.after = t.csv.InputOffset(), t.line
		headless := t.columns.width == 0 && len(t.errs) > 0
		if len(t.errs) >= maxMistakes || headless {
			t.errs = append(t.errs, fmt.Errorf("%s: the rest of the file was not checked", t.name))
			return errors.Join(t.errs...)
		}
		if len(t.calls) > t.mostCalls {
			return fmt.Errorf("%s: has more than %s calls", t.name, text.FormatInt(int64(t.mostCalls)))
		}
	}
}

// end checks the trace as a whole at the end of the file.
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

// quoteReason explains an error of the parser.
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

// mistake notes what is wrong with the current line, or with a field of it.
func (t *traceReader) mistake(field, value, reason string) {
	where := fmt.Sprintf("%s:%d: ", t.name, t.line)
	if field != "" {
		where += fmt.Sprintf("%s %q: ", field, clip.Text(value))
	}
	t.errs = append(t.errs, errors.New(where+reason))
}

// readRow reads one line.
func (t *traceReader) readRow(fields []string) {
	t.line, _ = t.csv.FieldPos(0)
	switch {
	case t.columns.width == 0:
		for _, reason := range t.columns.find(t.Options, fields) {
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

// call reads a call from its fields.
func (t *traceReader) call(fields []string) {
	known := len(t.errs)
	at := &t.columns
	c := Call{
		AtMS:    t.at(fields[at.time]),
		Input:   t.tokens(t.Input, fields[at.input]),
		Output:  t.tokens(t.Output, fields[at.output]),
		Line:    int32(t.line),
		LastsMS: NoDuration,
	}
	if c.Tokens() < 0 { // both are at least 0, so the sum is past int64
		t.mistake(t.Output, fields[at.output], "does not fit in 64 bits together with "+t.Input)
	}
	if at.duration >= 0 {
		ms, reason := parseDurationMS(fields[at.duration], t.DurationUnit)
		t.noteIf(t.Duration, fields[at.duration], reason)
		c.LastsMS = int32(ms)
	}
	c.Caller = t.caller(fields)
	if len(t.errs) == known {
		t.calls = append(t.calls, c)
	}
}

// noteIf notes a mistake if there is a reason for one.
func (t *traceReader) noteIf(field, value, reason string) {
	if reason != "" {
		t.mistake(field, value, reason)
	}
}

// at reads when a call arrived. It must not be before the call above it.
func (t *traceReader) at(text string) int64 {
	atMS, reason := parseTime(text, t.TimeUnit)
	switch {
	case reason != "":
	case atMS < t.last.atMS && !t.Sort:
		reason = fmt.Sprintf("is before %s on line %d; --sort sorts the calls by time",
			clip.Text(string(t.last.text)), t.last.line)
	default:
		t.last.atMS, t.last.line = atMS, t.line
		t.last.text = append(t.last.text[:0], text...)
	}
	t.noteIf(t.Time, text, reason)
	return atMS
}

func (t *traceReader) tokens(field, text string) int64 {
	n, reason := ParseTokens(text)
	t.noteIf(field, text, reason)
	return n
}

// caller reads who calls what.
func (t *traceReader) caller(fields []string) int32 {
	var by [2]int32 // the entity and the resource
	known := len(t.errs)
	if i := t.columns.entity; i >= 0 {
		number, reason := name(t.entities, fields[i], checkEntity)
		t.noteIf(t.Entity, fields[i], reason)
		by[0] = number
	}
	if i := t.columns.model; i >= 0 {
		number, reason := name(t.resources, fields[i], identifier.CheckResource)
		t.noteIf(t.Model, fields[i], reason)
		by[1] = number
	}
	if len(t.errs) > known {
		return 0
	}
	number, seen := t.callers.known[by]
	if !seen {
		if number, seen = t.callers.add(by); !seen {
			t.mistake(t.Entity, fields[t.columns.entity], fmt.Sprintf(
				"makes more than %s pairs of an entity and a resource", text.FormatInt(MaxEntities)))
		}
	}
	return number
}

// pairs returns the callers by their numbers.
func (t *traceReader) pairs() []EntityModel {
	var out []EntityModel
	for _, by := range t.callers.list {
		caller := EntityModel{Resource: t.Resource}
		if t.columns.entity >= 0 {
			caller.Entity = t.entities.list[by[0]]
		}
		if t.columns.model >= 0 {
			caller.Resource = t.resources.list[by[1]]
		}
		out = append(out, caller)
	}
	return out
}

// Bounds of a trace.
const (
	// MaxBytes bounds the size of a trace.
	MaxBytes = 1 << 30
	// MaxCalls bounds the number of its calls.
	MaxCalls = 10_000_000
	// MaxEntities bounds the number of entities that a trace may be spread over, or may name.
	MaxEntities = 1_000_000

	maxResources = 1_000
	maxLine      = 64 << 10 // bytes
	maxRecord    = 1 << 20  // bytes from the end of one call to the end of the next
	maxMistakes  = 10
	MaxAtMS      = 253402300799999 // the end of the year 9999
)

// boundedReader reads until the file, a line or a call is too large.
type boundedReader struct {
	from io.Reader
	name string
	most int64 // bytes

	read   int64 // bytes
	called int64 // bytes up to the end of the latest call
	after  int   // the line of that call
	line   int   // the current line, counted from 1
	inLine int   // bytes read of it
	err    error // for the next Read
}

// Read implements [io.Reader].
func (b *boundedReader) Read(into []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.from.Read(into)
	b.read += int64(n)
	b.err = err
	if err != nil && err != io.EOF {
		b.err = fmt.Errorf("%s: %w", b.name, err)
	}
	for rest := into[:n]; ; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			b.inLine += len(rest)
		} else {
			b.inLine += end
		}
		if b.inLine > maxLine {
			b.err = fmt.Errorf("%s:%d: the line is longer than %s bytes", b.name, b.line, text.FormatInt(maxLine))
			break
		}
		if end < 0 {
			break
		}
		b.line, b.inLine, rest = b.line+1, 0, rest[end+1:]
	}
	switch {
	case b.read > b.most:
		b.err = fmt.Errorf("%s: is larger than %s bytes", b.name, text.FormatInt(b.most))
	case b.read-b.called > maxRecord:
		b.err = fmt.Errorf("%s:%d: the call that begins here is longer than %s bytes: a quote may never be closed",
			b.name, b.after, text.FormatInt(maxRecord))
	}
	return n, b.err
}
