package replay

import (
	"bytes"
	"fmt"
	"io"

	"github.com/weir-limiter/weir/internal/text"
)

// Bounds of a trace.
const (
	// MaxTraceBytes is how large a trace may be.
	MaxTraceBytes = 1 << 30
	// MaxCalls is how many calls it may have.
	MaxCalls = 10_000_000
	// MaxEntities is over how many entities it may be spread, or how many it may name.
	MaxEntities = 1_000_000

	maxResources = 1_000
	maxLine      = 64 << 10 // bytes
	maxRecord    = 1 << 20  // bytes from the end of one call to the end of the next
	maxMistakes  = 10
	maxAtMS      = 253402300799999 // the end of the year 9999
)

// boundedReader passes a file on until it is too large, or a line or a call of it is.
type boundedReader struct {
	from io.Reader
	name string
	most int64 // bytes

	read   int64 // bytes
	called int64 // bytes until the end of the latest call
	after  int   // the line of that call
	line   int   // the line that is being read, counted from 1
	inLine int   // bytes of it
	err    error // for the next Read
}

// Read reads what is left within the bounds.
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
		b.err = fmt.Errorf("%s:%d: what follows goes on for more than %s bytes: a quote may never be closed",
			b.name, b.after, text.FormatInt(maxRecord))
	}
	return n, b.err
}
