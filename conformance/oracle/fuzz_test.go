package oracle_test

import (
	"strings"
	"testing"

	"github.com/weir-limiter/weir/conformance/oracle"
)

// FuzzCheck wants a report or an error of any input, and no panic.
func FuzzCheck(f *testing.F) {
	for _, log := range rightLogs(f) {
		f.Add(log)
	}
	f.Fuzz(func(t *testing.T, log string) {
		report, err := oracle.Check(strings.NewReader(log))
		if (report == nil) != (err != nil) {
			t.Errorf("got a report %v and an error %v", report, err)
		}
		if report != nil && len(report.Disagreements) > report.Disagreed {
			t.Errorf("got %d disagreements of %d", len(report.Disagreements), report.Disagreed)
		}
	})
}
