package manifest

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/money"
)

// Warning is something in a limits file that is valid and probably not meant.
type Warning struct {
	// File is the name that was passed to [Parse].
	File string
	// Line and Column are the position of the field and count from 1.
	Line   int
	Column int
	// Field, Value and Reason are as in a [*weir.Error].
	Field  string
	Value  string
	Reason string
}

// String returns one line: "limits.yaml:12:7: warning: …".
func (w *Warning) String() string {
	return fmt.Sprintf("%s:%d:%d: warning: %s %q: %s", w.File, w.Line, w.Column, w.Field, w.Value,
		w.Reason)
}

// Warnings returns what is valid and probably not meant, in the order of the file: limits on money
// that look as if they were in whole units of the currency, and limits of a weaker level that do not
// apply because a stronger level, which has only other limits, leaves them out.
func (m *Manifest) Warnings() []Warning {
	all := append(m.moneyWarnings(), m.leftOutWarnings()...)
	slices.SortStableFunc(all, func(a, b Warning) int {
		return comparePositions(position{a.Line, a.Column}, position{b.Line, b.Column})
	})
	return all
}

// warning returns a warning about a part of the file.
func (m *Manifest) warning(field, value, reason string) Warning {
	at, _ := m.find(field)
	return Warning{
		File: m.file, Line: at.line, Column: at.column, Field: field, Value: value, Reason: reason,
	}
}

// moneyWarnings returns the limits on money whose capacity looks as if it were in whole units of the
// currency. Amounts are whole numbers, so such a limit could not count a
// call that costs less than one unit. Money is best counted in millionths, in a limit with a name
// such as usd_micros.
//
// The name of a limit says that it is on money if one of its words is a currency, or cost or spend.
// The capacity looks like whole units if it is below 100,000, which is a tenth of a unit in
// millionths. A limit whose name says cents is taken as it is.
func (m *Manifest) moneyWarnings() []Warning {
	var all []Warning
	for path, l := range m.Definitions.All {
		reason := moneyReason(l)
		if reason != "" {
			all = append(all, m.warning(path+".capacity", strconv.FormatInt(l.Capacity, 10), reason))
		}
	}
	return all
}

// leastMicros is the capacity below which a limit on money looks as if it were in whole units.
const leastMicros = 100_000

// moneyReason returns why the capacity of a limit on money is probably not meant, or "".
func moneyReason(l *weir.Limit) string {
	if l.Kind == weir.Concurrency || l.Capacity >= leastMicros {
		return ""
	}
	unit := money.UnitOf(l.Name)
	whole := fmt.Sprintf("%d %s", l.Capacity, unit.Currency)
	meant := l.Capacity * money.Micros
	switch {
	case unit.Currency == "":
		return ""
	case unit.InMicros:
		return fmt.Sprintf("is %d millionths: if %s are meant, write %d", l.Capacity, whole, meant)
	}
	return fmt.Sprintf("looks like %s, and a limit counts only whole numbers: to count calls that cost less than one, "+
		"count in millionths, such as %s with a capacity of %d", whole, unit.Example(), meant)
}
