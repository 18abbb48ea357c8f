package replay

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

const azureTrace = "../../../examples/azure-llm-2023-code.csv"

// callOf returns a call of which the trace does not have the duration.
func callOf(line int, atMS, input, output int64) trace.Call {
	return trace.Call{AtMS: atMS, Input: input, Output: output, Line: int32(line), LastsMS: trace.NoDuration}
}

// traceOf returns a trace of calls of the resource llm.
func traceOf(calls ...trace.Call) *trace.Trace {
	return &trace.Trace{Name: "t.csv", Calls: calls, Callers: []trace.EntityModel{{Resource: "llm"}}}
}

// planOver binds a workload of calls that cost as many units as they generate tokens.
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

// explainer answers a number of Explain calls, and then ends a context.
type explainer struct {
	weir.Service

	asked, most int
	end         context.CancelFunc
}

func (e *explainer) Explain(_ context.Context, entity, resource string) (*weir.Explanation, error) {
	if e.asked++; e.asked == e.most {
		e.end()
	}
	limits := []weir.Limit{{Name: "rpm", Capacity: 1}}
	return &weir.Explanation{Entity: entity, Resource: resource, Limits: limits}, nil
}

// TestBindEndsWithContext checks that a workload of a million callers asks about them only until the context
// ends.
func TestBindEndsWithContext(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{3: 3, 1000: 50} {
		ctx, cancel := context.WithCancel(t.Context())
		e := &explainer{most: most, end: cancel}
		recorded := traceOf(each(50, 0, 1, 1)...)
		recorded.EntityColumn = "who"
		recorded.Callers = make([]trace.EntityModel, 50)
		for i := range recorded.Callers {
			recorded.Callers[i] = trace.EntityModel{Entity: TenantName(i), Resource: "llm"}
		}
		_, err := bindWorkload(ctx, e, NewWorkload(recorded, nil))
		if e.asked != want || errors.Is(err, context.Canceled) != (most < 50) {
			t.Errorf("ended after %d: asked %d times, got %v; want %d", most, e.asked, err, want)
		}
		cancel()
	}
}
