package function

import (
	"encoding/json"
	"io"
	"time"

	"github.com/weir-limiter/weir/aggregator"
)

// metrics writes the metrics of an invocation as a line of the log that CloudWatch turns into metrics
// (the embedded metric format).
type metrics struct {
	out   io.Writer
	table string
}

// measures are the measures of one invocation.
type measures struct {
	lag      time.Duration
	isolated int64
	failures int64
	counted  aggregator.Summary
}

// since adds what was counted between two instants.
func (m *measures) since(before, after *aggregator.Summary) *measures {
	m.counted = aggregator.Summary{
		Records: after.Records - before.Records, Counted: after.Counted - before.Counted,
		Hours: after.Hours - before.Hours, Totals: after.Totals - before.Totals,
		Gaps: after.Gaps - before.Gaps, Splits: after.Splits - before.Splits,
		SplitsFailed: after.SplitsFailed - before.SplitsFailed,
		Archived:     after.Archived - before.Archived, Objects: after.Objects - before.Objects,
		Refills: after.Refills - before.Refills, RefillsLost: after.RefillsLost - before.RefillsLost,
	}
	return m
}

// metricsNamespace is the namespace of the metrics in CloudWatch.
const metricsNamespace = "weir"

// metric describes a metric to CloudWatch.
type metric struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// write writes the measures.
func (m *metrics) write(at time.Time, of *measures) {
	line := map[string]any{"Table": m.table}
	var described []metric
	for _, v := range []struct {
		name, unit string
		value      int64
	}{
		{"Lag", "Milliseconds", of.lag.Milliseconds()},
		{"Records", "Count", of.counted.Records},
		{"CountedRecords", "Count", of.counted.Counted},
		{"UsageUpdates", "Count", of.counted.Hours},
		{"Totals", "Count", of.counted.Totals},
		{"Gaps", "Count", of.counted.Gaps},
		{"Splits", "Count", of.counted.Splits},
		{"FailedSplits", "Count", of.counted.SplitsFailed},
		{"Refills", "Count", of.counted.Refills},
		{"LateRefills", "Count", of.counted.RefillsLost},
		{"ArchivedEvents", "Count", of.counted.Archived},
		{"IsolatedRecords", "Count", of.isolated},
		{"Failures", "Count", of.failures},
	} {
		line[v.name] = v.value
		described = append(described, metric{v.name, v.unit})
	}
	line["_aws"] = map[string]any{
		"Timestamp": at.UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace": metricsNamespace, "Dimensions": [][]string{{"Table"}}, "Metrics": described,
		}},
	}
	text, err := json.Marshal(line)
	if err != nil {
		return // only strings and numbers
	}
	m.out.Write(append(text, '\n')) //nolint:errcheck,gosec // There is nowhere to say that the log fails.
}
