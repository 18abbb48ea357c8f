package oracle

import "fmt"

// maxDisagreements is how many disagreements a report lists; the rest are only counted.
const maxDisagreements = 20

// Report is what Check found in a log.
type Report struct {
	// Lines counts all lines, the first and the last included.
	Lines int
	// Admitted, Denied and Errors count the reserve lines by what the log says of them.
	Admitted, Denied, Errors int
	// Settled counts the complete and cancel lines without an error.
	Settled int
	// Judged counts the limits judged, by kind.
	Judged map[string]int
	// Available counts the available figures compared, RetryAfter the retry-afters of exceeded
	// limits, Overall those of denied requests.
	Available, RetryAfter, Overall int
	// Disagreed counts all disagreements; Disagreements holds the first 20.
	Disagreed     int
	Disagreements []Disagreement
}

// Disagreement is one statement of the log that the semantics contradict.
type Disagreement struct {
	// Line is the line of the log, from 1.
	Line int
	// About is what was compared, such as "decision" or "tenant-1/llm tpm: available".
	About string
	// Log is what the log says, Law what it should say.
	Log, Law string
	// Why gives the state from which Law follows.
	Why string
}

// String is the disagreement as one line of text.
func (d Disagreement) String() string {
	return fmt.Sprintf("line %d: %s: the log says %s, the semantics say %s: %s",
		d.Line, d.About, d.Log, d.Law, d.Why)
}

func (c *checker) disagree(about string, log, law any, why string) {
	c.report.Disagreed++
	if len(c.report.Disagreements) == maxDisagreements {
		return
	}
	c.report.Disagreements = append(c.report.Disagreements, Disagreement{
		Line: c.report.Lines, About: about, Log: fmt.Sprint(log), Law: fmt.Sprint(law), Why: why,
	})
}
