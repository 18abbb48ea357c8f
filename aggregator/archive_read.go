package aggregator

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

var (
	errNoImage  = errors.New("the record does not have the item before the removal")
	errOtherKey = errors.New("the record's item has another key")
)

// ArchivedEvent is an event of the audit that was read from the archive.
type ArchivedEvent struct {
	weir.AuditEvent

	// Namespace is the name of the namespace when the event was archived; empty if it was not
	// known.
	Namespace   string
	NamespaceID string
}

// LineError is the error of one line of an object.
type LineError struct {
	// Line is its number, from 1.
	Line int
	Err  error
}

// Error names the line and the reason.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

const (
	// MaxArchiveBytes bounds what an object may expand to. A batch has at most 16 MiB of items,
	// and a byte of them takes at most six in each of two fields.
	MaxArchiveBytes = 256 << 20
	// maxLineBytes bounds a line: an item has at most 400 KiB.
	maxLineBytes = 8 << 20
)

// ReadArchive yields the events of an object, in its order. A line that is not an event yields a
// [*LineError], and the next one follows. Any other error is that of the object, and the last. An
// object that was expanded on its way is read too.
func ReadArchive(body io.Reader) iter.Seq2[*ArchivedEvent, error] {
	return func(yield func(*ArchivedEvent, error) bool) {
		plain, err := expand(bufio.NewReader(body))
		if err != nil {
			yield(nil, err)
			return
		}
		r := lineReader{from: bufio.NewReader(&bounded{plain, MaxArchiveBytes})}
		for n := 1; ; n++ {
			line, err := r.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil && !errors.Is(err, errLongLine) {
				yield(nil, fmt.Errorf("after line %d: %w", n-1, err))
				return
			}
			if err == nil && len(line) == 0 {
				continue
			}
			var e *ArchivedEvent
			if err == nil {
				e, err = parseArchiveLine(line)
			}
			if err != nil {
				e, err = nil, &LineError{n, err}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// expand returns the text of an object. Some tools store or serve it expanded.
func expand(from *bufio.Reader) (io.Reader, error) {
	first, err := from.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errEmptyObject
	case err != nil:
		return nil, err
	case first[0] == '{':
		return from, nil
	}
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("is not compressed with gzip: %w", err)
	}
	return z, nil
}

var (
	errEmptyObject = errors.New("is empty")
	errLongLine    = fmt.Errorf("is longer than %d MiB", maxLineBytes>>20)
	errLargeObject = fmt.Errorf("expands to more than %d MiB", MaxArchiveBytes>>20)
)

// bounded is a reader that fails beyond a number of bytes.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLargeObject
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// lineReader reads lines without their ends.
type lineReader struct {
	from *bufio.Reader
	line []byte
}

// next returns the next line. It is valid until the next call. The error is errLongLine for one
// that is too long, which is skipped.
func (r *lineReader) next() ([]byte, error) {
	r.line = r.line[:0]
	long := false
	for {
		part, err := r.from.ReadSlice('\n')
		if long = long || len(r.line)+len(part) > maxLineBytes; !long {
			r.line = append(r.line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(r.line) == 0 && !long):
			return nil, err
		case long:
			return nil, errLongLine
		}
		return bytes.TrimRight(r.line, "\r\n"), nil
	}
}

// parseArchiveLine parses a line.
func parseArchiveLine(data []byte) (*ArchivedEvent, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var line archiveLine
	if err := d.Decode(&line); err != nil {
		return nil, fmt.Errorf("is not an event: %w", err)
	}
	if d.More() {
		return nil, errTwoValues
	}
	if line.Error != "" || line.Item != nil {
		return nil, fmt.Errorf("has an item that could not be read when it was archived: %.256s",
			line.Error)
	}
	at, err := line.check()
	if err != nil {
		return nil, fmt.Errorf("is not an event: %w", err)
	}
	details := schema.PlainMap(line.Details)
	if line.Typed != nil {
		if details, err = parseTypedDetails(line.Typed); err != nil {
			return nil, err
		}
	}
	return &ArchivedEvent{
		AuditEvent: weir.AuditEvent{
			ID: line.EventID, At: at, Action: line.Action, Entity: line.Entity,
			Principal: orEmpty(line.Principal), Resource: orEmpty(line.Resource), Details: details,
		},
		Namespace: orEmpty(line.Namespace), NamespaceID: line.NamespaceID,
	}, nil
}

var errTwoValues = errors.New("is not an event: something follows it")

// parseTypedDetails returns the details of a line by their types.
func parseTypedDetails(fields map[string]any) (map[string]any, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	item, err := schema.ParseTypedJSON(data)
	if err != nil {
		return nil, fmt.Errorf("typed: %w", err)
	}
	decoded, ok := schema.DecodeMap(item)[schema.AttrDetails].(map[string]any)
	if !ok {
		return nil, errNoDetails
	}
	return decoded, nil
}

var errNoDetails = errors.New("typed: has no details")

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
