package replay

import (
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

const azureTrace = "../../../testdata/azure-llm-2023-code.csv"

// callOf is a call whose trace does not say how long it lasted.
func callOf(line int, atMS, input, output int64) trace.Call {
	return trace.Call{AtMS: atMS, Input: input, Output: output, Line: int32(line), LastsMS: trace.NoDuration}
}

// traceOf is a trace of calls of the resource llm.
func traceOf(calls ...trace.Call) *trace.Trace {
	return &trace.Trace{Name: "t.csv", Calls: calls, Callers: []trace.EntityModel{{Resource: "llm"}}}
}

// planOver plans calls that cost as much as they generate.
func planOver(t *testing.T, s weir.Service, latency string, calls ...trace.Call) *boundWorkload {
	t.Helper()
	l, err := ParseLatency(latency)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorkload(traceOf(calls...), &WorkloadOptions{
		Latency: l, Costs: Costs{"rpm": {output: 1}},
	})
	p, err := bindWorkload(t.Context(), s, w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
