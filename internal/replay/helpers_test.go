package replay

import (
	"testing"

	"github.com/weir-limiter/weir"
)

const azureTrace = "../../testdata/azure-llm-2023-code.csv"

// callOf is a call whose trace does not say how long it lasted.
func callOf(line int, atMS, input, output int64) Call {
	return Call{AtMS: atMS, Input: input, Output: output, Line: int32(line), LastsMS: untold}
}

// traceOf is a trace of calls of the resource llm.
func traceOf(calls ...Call) *Trace {
	return &Trace{Name: "t.csv", Calls: calls, Callers: []Caller{{Resource: "llm"}}}
}

// planOver plans calls that cost as much as they generate.
func planOver(t *testing.T, s weir.Service, latency string, calls ...Call) *plan {
	t.Helper()
	l, err := ParseLatency(latency)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorkload(traceOf(calls...), &WorkloadOptions{
		Latency: l, Costs: Costs{"rpm": {output: 1}},
	})
	p, err := newPlan(t.Context(), s, w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
