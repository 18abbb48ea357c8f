package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/joined"
)

// Error is a mistake in a limits file and its position.
type Error struct {
	// File is the name that was passed to [Parse].
	File string
	// Line and Column count from 1. A column is a character.
	Line   int
	Column int
	// Err is the mistake: a [*weir.Error] that names the field, its value and the reason.
	Err error
}

// Error returns one line: "limits.yaml:12:7: weir: invalid: …".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

// Unwrap returns the mistake.
func (e *Error) Unwrap() error { return e.Err }

// position is a line and a column of the file, counted from 1.
type position struct{ line, column int }

func comparePositions(a, b position) int {
	return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
}

// maxMistakes bounds the number of mistakes that are reported. The number of the others is reported
// too.
const maxMistakes = 1000

// mistakes collects the mistakes in a file.
type mistakes struct {
	file string
	end  position // of the text, because the scanner may place the last token after it
	list []*Error
	more int
}

func (m *mistakes) none() bool { return len(m.list) == 0 }

// add records a mistake. The field may be empty if the reason says everything.
func (m *mistakes) add(at position, field, value, reason string) {
	if len(m.list) == maxMistakes {
		m.more++
		return
	}
	if m.end.line > 0 && comparePositions(at, m.end) > 0 {
		at = m.end
	}
	m.list = append(m.list, &Error{File: m.file, Line: at.line, Column: at.column, Err: &weir.Error{
		Code: weir.Invalid, Field: field, Value: clip.Text(value), Reason: reason,
	}})
}

// err returns the mistakes joined in the order of the file.
func (m *mistakes) err() error {
	slices.SortStableFunc(m.list, func(a, b *Error) int {
		return comparePositions(position{a.Line, a.Column}, position{b.Line, b.Column})
	})
	errs := make([]error, 0, len(m.list)+1)
	for _, e := range m.list {
		errs = append(errs, e)
	}
	if m.more > 0 {
		last := *m.list[len(m.list)-1]
		last.Err = &weir.Error{
			Code: weir.Invalid, Reason: fmt.Sprintf("there are %d more mistakes", m.more),
		}
		errs = append(errs, &last)
	}
	return errors.Join(errs...)
}

// faults returns the [*weir.Error]s joined in err, in order.
func faults(err error) []*weir.Error {
	var all []*weir.Error
	for _, e := range joined.Errors(err) {
		if we, ok := errors.AsType[*weir.Error](e); ok {
			all = append(all, we)
		}
	}
	return all
}
