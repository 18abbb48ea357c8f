package replay

import (
	"fmt"
	"testing"

	"github.com/weir-limiter/weir/internal/lab/trace"
)

// TestEstimatesKnowAll: as many pairs of an entity and a model as there are in a trace are
// learned, and none is forgotten for another.
func TestEstimatesKnowAll(t *testing.T) {
	t.Parallel()
	const pairs = 10_500 // more than an estimator knows by itself
	var how Estimate
	if err := how.Set("quantile:0.5"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ room, known int64 }{{pairs, pairs}, {pairs - 500, pairs - 500}} {
		e, err := newEstimates(how, int(tt.room))
		if err != nil {
			t.Fatal(err)
		}
		for i := range pairs {
			by := &pricedCaller{EntityModel: trace.EntityModel{Entity: fmt.Sprint("e", i), Resource: "llm"}}
			a := &Attempt{
				Call: &trace.Call{Output: 7}, Entity: by.Entity, Resource: by.Resource, payer: by,
			}
			for range 3 {
				if err := e.Completed(a); err != nil {
					t.Fatal(err)
				}
			}
		}
		r := e.learned.Report()
		if r.KnownKeys != tt.known || r.ForgottenKeys != pairs-tt.known {
			t.Errorf("room for %d: %d are known and %d forgotten",
				tt.room, r.KnownKeys, r.ForgottenKeys)
		}
	}
}
