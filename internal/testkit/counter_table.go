package testkit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counts are the figures of a [Counter], by operation.
type Counts map[string]Operation

// Total is the sum over some operations, or over all of them if none is named.
func (c Counts) Total(operations ...string) Operation {
	total := Operation{Errors: map[string]int64{}, Indexes: map[string]Capacity{}}
	for name, op := range c {
		if len(operations) > 0 && !slices.Contains(operations, name) {
			continue
		}
		total.Calls += op.Calls
		total.Attempts += op.Attempts
		total.Capacity.add(op.Capacity)
		total.Tables.add(op.Tables)
		for code, n := range op.Errors {
			total.Errors[code] += n
		}
		for index, part := range op.Indexes {
			sum := total.Indexes[index]
			sum.add(part)
			total.Indexes[index] = sum
		}
	}
	return total
}

// Reads is the number of calls that only read items.
func (c Counts) Reads() int64 { return c.Total(readOperations...).Calls }

// Writes is the number of calls that write items, whether or not they were successful.
func (c Counts) Writes() int64 {
	return c.Total("BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem").Calls
}

// String returns a table in Markdown: a row for each operation with its calls, attempts, failures,
// consumed units, and the units of the indexes among them.
func (c Counts) String() string {
	var b strings.Builder
	b.WriteString("| operation | calls | attempts | failed | read units | write units " +
		"| of these in indexes |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|\n")
	for _, name := range slices.Sorted(maps.Keys(c)) {
		op := c[name]
		var failed, indexes int64
		for _, n := range op.Errors {
			failed += n
		}
		for _, part := range op.Indexes {
			indexes += part.ReadMilli + part.WriteMilli
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s | %s | %s |\n", name, op.Calls, op.Attempts, failed,
			units(op.Capacity.ReadMilli), units(op.Capacity.WriteMilli), units(indexes))
	}
	return b.String()
}

// units writes thousandths as a decimal number.
func units(milli int64) string {
	s := fmt.Sprintf("%d.%03d", milli/1000, milli%1000)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
