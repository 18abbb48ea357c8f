package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// outcome is what a line answers: done, or a kind of error, known by what its text says.
type outcome string

const (
	done             outcome = "done"
	neverSatisfiable outcome = "never satisfiable"
	unknownLimit     outcome = "unknown limit"
	noLimits         outcome = "no limits configured"
	conflict         outcome = "conflict"
	ended            outcome = "ended"
	otherError       outcome = "another error"
	anyError         outcome = "any error"
)

// covers says whether the text of an error, empty for none, is of this outcome.
func (o outcome) covers(text string) bool {
	named := []outcome{neverSatisfiable, unknownLimit, noLimits, conflict, ended}
	switch o {
	case done:
		return text == ""
	case anyError:
		return text != ""
	case otherError:
		return text != "" && !slices.ContainsFunc(named, func(n outcome) bool { return n.covers(text) })
	}
	return strings.Contains(text, string(o))
}

// due is the outcomes that are right for a line; none means done.
type due struct {
	outcomes []outcome
	why      string
}

func (d *due) add(o outcome, format string, args ...any) {
	d.outcomes = append(d.outcomes, o)
	d.why += fmt.Sprintf(format, args...) + "; "
}

// met compares the error of a line, empty if it has none, with what is due, and says whether the
// line is done and rightly so.
func (c *checker) met(about, text string, want due) bool {
	if len(want.outcomes) == 0 {
		want.add(done, "nothing is wrong with it")
	}
	right := slices.ContainsFunc(want.outcomes, func(o outcome) bool { return o.covers(text) })
	if !right {
		c.disagree(about, fmt.Sprintf("error %q", text), want.outcomes, want.why)
	}
	return right && text == ""
}
