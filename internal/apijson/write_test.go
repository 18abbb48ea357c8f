package apijson

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-limiter/weir"
)

// sameText fails the test if an answer is not what encoding/json writes for body.
func sameText(t *testing.T, answer, body any) {
	t.Helper()
	want, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter()
	for range 2 { // the second time with the used buffer
		recorder := httptest.NewRecorder()
		if err := w.Write(recorder, http.StatusOK, "application/json", answer); err != nil {
			t.Fatal(err)
		}
		if got := recorder.Body.String(); got != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestLeaseText(t *testing.T) {
	t.Parallel()
	property(t, func(t *testing.T, d dice) {
		l := &weir.Lease{
			ID: d.id(), ReservedAt: d.time(), Expires: d.time(), HoldsUntil: d.time(), Degraded: d.flip(),
			Replay: d.flip(), Seq: d.number(), Limits: d.statuses(),
		}
		sameText(t, LeaseText{l}, LeaseOf(l))
	})
}

func TestReceiptText(t *testing.T) {
	t.Parallel()
	property(t, func(t *testing.T, d dice) {
		r := &weir.Receipt{
			LeaseID: d.id(), At: d.time(), Expires: d.time(), HoldsUntil: d.time(), Degraded: d.flip(),
			RefundInDoubt: d.flip(),
		}
		sameText(t, ReceiptText{r}, ReceiptOf(r))
	})
}

func TestProblemText(t *testing.T) {
	t.Parallel()
	property(t, func(t *testing.T, d dice) {
		p := &Problem{
			Type: d.text(), Title: d.text(), Status: int(d.number()), Detail: d.text(),
			Code: weir.Code(d.text()), Field: d.text(), Value: d.text(), Reason: d.text(), LeaseID: d.text(),
			AtLeast: d.flip(), Contended: d.flip(), Limits: StatusesOf(d.statuses()),
		}
		for range d.IntN(3) {
			p.ViolatedPolicies = append(p.ViolatedPolicies, d.text())
			p.Errors = append(p.Errors, Mistake{weir.Code(d.text()), d.text(), d.text(), d.text()})
		}
		if d.flip() {
			p.Allowed, p.RetryAfterMS = new(d.flip()), new(d.number())
		}
		sameText(t, p, p)
	})
}
