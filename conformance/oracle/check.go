package oracle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxAtMS is the end of the year 9999: beyond it a time is a mistake, and below it no sum of a time
// and a window leaves int64.
const maxAtMS = 253402300799999

// maxLine is the longest line in bytes, far more than a request with all its limits takes.
const maxLine = 16 << 20

// checker holds the books that a log's lines are judged by.
type checker struct {
	report    Report
	subjects  map[subjectKey]*subject
	leases    map[string]*lease
	calendars map[string]*calendar
	now       int64 // epoch ms of the last line with a time
	ended     bool
}

// Check judges a decision log. A log that cannot be judged (malformed, out of order, truncated) is
// an error that names the line; a disagreement is no error but part of the report.
func Check(r io.Reader) (*Report, error) {
	c := &checker{
		report:    Report{Judged: map[string]int{}},
		subjects:  map[subjectKey]*subject{},
		leases:    map[string]*lease{},
		calendars: map[string]*calendar{},
	}
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	for in.Scan() {
		c.report.Lines++
		if err := c.line(in.Bytes()); err != nil {
			return nil, fmt.Errorf("oracle: line %d: %w", c.report.Lines, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("oracle: after line %d: %w", c.report.Lines, err)
	}
	if !c.ended {
		return nil, fmt.Errorf("oracle: line %d: truncated, no end line", c.report.Lines)
	}
	return &c.report, nil
}

// line judges one line; its error says that the log is malformed.
func (c *checker) line(raw []byte) error {
	var head headLine
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	first := c.report.Lines == 1
	switch {
	case c.ended:
		return errors.New("a line after the end")
	case first != (head.Kind == "run"):
		return errors.New("the first line, and only that, is run")
	case first && head.Format != 1:
		return fmt.Errorf("format %d, not 1", head.Format)
	case first:
		return nil
	case head.Kind == "subject":
		return with(raw, c.define)
	case head.AtMS == nil || *head.AtMS < c.now || *head.AtMS > maxAtMS:
		return fmt.Errorf("no at_ms between %d, the time before, and %d", c.now, maxAtMS)
	}
	c.now = *head.AtMS
	switch head.Kind {
	case "reserve":
		return with(raw, c.reserve)
	case "adjust", "complete", "cancel", "extend", "end":
		return with(raw, c.verb)
	}
	return fmt.Errorf("unknown kind %q", head.Kind)
}
