package apijson

import (
	"testing"

	"github.com/weir-limiter/weir"
)

// What the client sends is in plain form.
func TestWrittenBodiesAreReadPlainly(t *testing.T) {
	t.Parallel()
	id, costs := weir.LeaseID{1}, weir.Costs{"rpm": 1, "tpm": 500}
	reserve, err := ReserveRequestOf(&weir.Request{Entity: "acme", Resource: "openai/gpt-4o", Costs: costs})
	if err != nil {
		t.Fatal(err)
	}
	reserve.LeaseID = id.String()
	totals, err := TotalsOf("totals", []weir.Costs{costs})
	if err != nil {
		t.Fatal(err)
	}
	for verb, body := range map[string]any{
		"reserve":  reserve,
		"adjust":   &AdjustRequest{LeaseID: id, Seq: 1, Totals: totals},
		"complete": &CompleteRequest{LeaseID: id, Actuals: totals},
		"cancel":   &LeaseRequest{id},
	} {
		text, err := Write(body)
		if err != nil {
			t.Fatal(err)
		}
		if took := readsPlain(t, text); !contains(took, verb) {
			t.Errorf("%s: not in plain form: %s", verb, text)
		}
	}
}
