package httphandler_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

func TestFlatKeys(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	id := w.lease()
	a := w.reserve(`{"lease_id":"` + id +
		`","requirements":[{"key":"k2","amount":6},{"key":"k1","amount":3}]}`)
	a.want(t, 200, "lease_id", id)
	first := a.first(t)
	if first["entity"] != "k1" || first["resource"] != "key" || first["limit"] != "units" ||
		first["requested"] != 3.0 {
		t.Errorf("first limit is %v", first)
	}
	// The order of the keys is not part of the request.
	w.reserve(`{"lease_id":"`+id+`","requirements":[{"key":"k1","amount":3},{"key":"k2","amount":6}]}`).
		want(t, 200, "replay", true)
	w.reserve(`{"lease_id":"`+id+`","requirements":[{"key":"k1","amount":6},{"key":"k2","amount":3}]}`).
		want(t, 409, "code", "conflict")
	wantLeft := func(k1, k2 int64) {
		t.Helper()
		if a, b := w.available("k1", "key", "units"), w.available("k2", "key", "units"); a != k1 ||
			b != k2 {
			t.Errorf("%d and %d left, want %d and %d", a, b, k1, k2)
		}
	}
	wantLeft(7, 4)
	before := w.state()
	w.reserve(`{"requirements":[{"key":"k1","amount":7},{"key":"k2","amount":5}]}`).
		want(t, 429, "violated-policies", []any{"k2/key/units"}, "allowed", false)
	w.unchanged(before)

	w.post("adjust", `{"lease_id":"`+id+`","seq":1,"totals":[{"key":"k2","amount":8}]}`).want(t, 200)
	wantLeft(7, 2)
	complete := `{"lease_id":"` + id + `","actuals":[{"key":"k2","actual_amount":1},{"key":"k1","actual_amount":0}]}`
	done := w.post("complete", complete)
	done.want(t, 200)
	wantLeft(10, 9)
	w.advance(9 * time.Minute)
	if again := w.post("complete", complete); again.text != done.text {
		t.Errorf("repeated complete says %s, first said %s", again.text, done.text)
	}
	w.post("complete", `{"lease_id":"`+id+`","actuals":[{"key":"k2","actual_amount":2}]}`).want(t,
		409, "code", "conflict")
	w.advance(2 * time.Minute)
	w.post("complete", complete).want(t, 404, "code", "unknown lease", "field", "lease_id", "value",
		id)
}

// TestFlatUnnamedKeys checks that the units of a key that an adjust does not name stay as they are.
func TestFlatUnnamedKeys(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	for _, c := range []struct {
		actuals string
		k1, k2  int64
	}{
		{`,"actuals":[{"key":"k1","actual_amount":1}]`, 9, 4},
		{``, 7, 4},
		{`,"actuals":[]`, 7, 4},
		{`,"actuals":{}`, 7, 4},
	} {
		w.advance(time.Minute)
		a := w.reserve(`{"requirements":[{"key":"k2","amount":6},{"key":"k1","amount":3}]}`)
		a.want(t, 200)
		w.post("complete", `{"lease_id":"`+a.body["lease_id"].(string)+`"`+c.actuals+`}`).want(t, 200)
		if a, b := w.available("k1", "key", "units"), w.available("k2", "key", "units"); a != c.k1 ||
			b != c.k2 {
			t.Errorf("%s: %d and %d left, want %d and %d", c.actuals, a, b, c.k1, c.k2)
		}
	}
}

// TestFlatKeysMustBeNamed checks that updates of a lease with several keys must name them, because
// the handler sorts the charges. A single key need not be named.
func TestFlatKeysMustBeNamed(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	id := w.reserve(`{"requirements":[{"key":"k2","amount":5},{"key":"k1","amount":3}]}`).body["lease_id"].(string)
	before := w.state()
	for _, c := range []struct{ verb, member, field, value string }{
		{"complete", `"actuals":[{"units":5},{"units":0}]`, "actuals", "2"},
		{"complete", `"actuals":[{"units":5}]`, "actuals", "1"},
		{"complete", `"actuals":[{},{}]`, "actuals", "2"},
		{"complete", `"actuals":{"units":5}`, "actuals.units", "5"},
		{"adjust", `"seq":1,"totals":[{"units":5},{"units":0}]`, "totals", "2"},
		{"adjust", `"seq":1,"totals":{"units":5}`, "totals.units", "5"},
	} {
		w.post(c.verb, `{"lease_id":"`+id+`",`+c.member+`}`).want(t, 400, "code", "invalid",
			"field", c.field, "value", c.value, "reason", "must name the keys, because several were reserved")
	}
	w.unchanged(before)
	w.post("complete", `{"lease_id":"`+id+`","actuals":[{"key":"k2","actual_amount":0}]}`).want(t, 200)
	for i, actuals := range []string{`{"units":1}`, `[{"units":1}]`, `[{"key":"acme","actual_amount":1}]`} {
		id = w.reserve(`{"requirements":[{"key":"acme","amount":5}]}`).body["lease_id"].(string)
		w.post("complete", `{"lease_id":"`+id+`","actuals":`+actuals+`}`).want(t, 200)
		if got, want := w.available("acme", "key", "units"), int64(9-i); got != want {
			t.Errorf("%s: %d left, want %d", actuals, got, want)
		}
	}
}

// TestFlatClockCorrected checks that leases stay known after the clock was ahead for one call.
func TestFlatClockCorrected(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	w.advance(2 * time.Hour)
	w.reserve(`{"requirements":[{"key":"slots","amount":1}]}`).want(t, 200)
	w.advance(-2 * time.Hour)
	for _, key := range []string{"k1", "k2"} {
		id := w.reserve(`{"requirements":[{"key":"` + key + `","amount":5}]}`).body["lease_id"].(string)
		w.post("complete", `{"lease_id":"`+id+`","actuals":[{"key":"`+key+`","actual_amount":1}]}`).
			want(t, 200)
		if got := w.available(key, "key", "units"); got != 9 {
			t.Errorf("%d left, want 9", got)
		}
	}
}

func TestFlatMistakes(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	id := w.reserve(`{"requirements":[{"key":"slots","amount":1},{"key":"k2","amount":6}]}`).body["lease_id"].(string)
	one := w.reserve(`{"requirements":[{"key":"slots","amount":1}]}`).body["lease_id"].(string)
	before := w.state()
	for _, c := range []struct{ id, actuals, field, value, reason string }{
		{id, `[{"key":"k3","actual_amount":1}]`, "actuals[0].key", "k3", "was not reserved"},
		{id, `[{"key":"k2","actual_amount":1},{"key":"k2","actual_amount":1}]`, "actuals[1].key", "k2",
			"is given twice"},
		{id, `[{"key":"k2","actual_amount":1},{"key":"K2","actual_amount":1}]`, "actuals[1].key", "K2",
			"was not reserved"},
		{id, `[{"key":"k 2","actual_amount":1}]`, "actuals[0].key", "k 2", "must not contain"},
		{id, `[{"key":"k#2","actual_amount":1}]`, "actuals[0].key", "k#2", "must not contain"},
		{id, `[{"key":"k2"}]`, "actuals[0].actual_amount", "", "must be given"},
		{id, `[{"key":"k2","actual_amount":1},{"actual_amount":1}]`, "actuals[1].key", "",
			"must be given"},
		{id, `[{"key":"k2","amount":1}]`, "actuals[0].amount", "amount", "is not a known field"},
		{id, `[{"key":"k2","actual_amount":-1}]`, "actuals[0].actual_amount", "-1",
			"must not be negative"},
		{id, `[{"key":"k2","actual_amount":1.5}]`, "actuals[0].actual_amount", "1.5", "without fraction"},
		{id, `[{"key":"k2","actual_amount":1},{"key":"slots","actual_amount":2}]`,
			"actuals[1].actual_amount", "2", "more slots"},
		{one, `[{"key":"slots","actual_amount":2}]`, "actuals[0].actual_amount", "2", "more slots"},
		{one, `[{"key":"k2","actual_amount":2}]`, "actuals[0].key", "k2", "was not reserved"},
	} {
		a := w.post("complete", `{"lease_id":"`+c.id+`","actuals":`+c.actuals+`}`)
		reason, _ := a.body["reason"].(string)
		if a.status != 400 || a.body["field"] != c.field || !strings.Contains(reason, c.reason) ||
			c.value != "" && a.body["value"] != c.value {
			t.Errorf("%s: %d %s", c.actuals, a.status, a.text)
		}
	}
	w.post("adjust", `{"lease_id":"`+id+`","seq":1,"totals":[{"key":"k2","actual_amount":1}]}`).
		want(t, 400, "field", "totals[0].actual_amount")
	w.unchanged(before)
	w.reserve(`{"requirements":[{"key":"k1","amount":11},{"key":"k2","amount":1}]}`).
		want(t, 422, "field", "requirements", "value", "11")
	w.unchanged(before)
	w.post("complete", `{"lease_id":"`+one+`","actuals":[{"key":"slots","actual_amount":1}]}`).want(t,
		200)
}

// TestFlatOnAnotherHandler checks that another handler of the same service settles by key,
// including a lease that has ended.
func TestFlatOnAnotherHandler(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	first, second := w.handler, httphandler.New(w.limiter, w.options)
	id := w.reserve(`{"requirements":[{"key":"k2","amount":6},{"key":"k1","amount":3}]}`).body["lease_id"].(string)
	w.handler = second
	checkFlatSettling(w, id)
	w.handler = first
	checkFlatEnded(w, id)
	other := weir.NewLeaseID(w.clock()).String()
	w.post("complete", `{"lease_id":"`+other+`","actuals":[{"key":"k2","actual_amount":1}]}`).
		want(t, 404, "code", "unknown lease", "field", "lease_id", "value", other)
}

// checkFlatSettling adjusts and completes by key a lease with 3 units of the key k1 and 6 of k2.
func checkFlatSettling(w *handlerWorld, id string) {
	w.t.Helper()
	before := w.state()
	w.post("complete", `{"lease_id":"`+id+`","actuals":[{"key":"k3","actual_amount":1}]}`).
		want(w.t, 400, "code", "invalid", "field", "actuals[0].key", "value", "k3", "reason", "was not reserved")
	w.post("complete", `{"lease_id":"`+id+`","actuals":[{"units":5},{"units":0}]}`).
		want(w.t, 400, "field", "actuals", "value", "2", "reason", "must name the keys, because several were reserved")
	w.unchanged(before)
	w.post("adjust", `{"lease_id":"`+id+`","seq":1,"totals":[{"key":"k1","amount":8}]}`).want(w.t, 200)
	checkFlatLeft(w, 2, 4)
	w.post("complete", flatComplete(id, 2)).want(w.t, 200)
	checkFlatLeft(w, 9, 8)
}

// checkFlatEnded repeats the complete of [checkFlatSettling].
func checkFlatEnded(w *handlerWorld, id string) {
	w.t.Helper()
	w.post("complete", flatComplete(id, 2)).want(w.t, 200, "lease_id", id)
	w.post("complete", `{"lease_id":"`+id+
		`","actuals":[{"key":"k1","actual_amount":1},{"key":"k2","actual_amount":2}]}`).want(w.t, 200)
	w.post("complete", flatComplete(id, 3)).want(w.t, 409, "code", "conflict")
	w.post("complete", `{"lease_id":"`+id+`"}`).want(w.t, 409, "code", "conflict")
	w.post("cancel", `{"lease_id":"`+id+`"}`).want(w.t, 409, "code", "conflict")
	w.post("adjust", `{"lease_id":"`+id+`","seq":2,"totals":[{"key":"k1","amount":1}]}`).want(w.t,
		409, "code", "ended")
	checkFlatLeft(w, 9, 8)
}

func flatComplete(id string, k2 int) string {
	return fmt.Sprintf(`{"lease_id":%q,"actuals":[{"key":"k2","actual_amount":%d},{"key":"k1","actual_amount":1}]}`, id, k2)
}

func checkFlatLeft(w *handlerWorld, k1, k2 int64) {
	w.t.Helper()
	if a, b := w.available("k1", "key", "units"), w.available("k2", "key", "units"); a != k1 || b != k2 {
		w.t.Errorf("%d and %d left, want %d and %d", a, b, k1, k2)
	}
}

// TestFlatAfterRestart checks that live and ended leases keep their flat keys after a restart from
// a snapshot.
func TestFlatAfterRestart(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	file := filepath.Join(t.TempDir(), "snapshot")
	w.restart(file)
	reserve := `{"lease_id":"` + w.lease() + `","requirements":[{"key":"k2","amount":6},{"key":"k1","amount":3}]}`
	id := w.reserve(reserve).body["lease_id"].(string)
	w.restart(file)
	checkFlatSettling(w, id)
	w.restart(file)
	checkFlatEnded(w, id)
	w.reserve(reserve).want(t, 409, "code", "ended")
}

// TestFlatExtended checks that an extended lease keeps its keys, and that a limit called key is not
// a flat key.
func TestFlatExtended(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	id := w.reserve(`{"requirements":[{"key":"k2","amount":6}]}`).body["lease_id"].(string)
	for range 4 {
		w.advance(50 * time.Minute)
		w.post("extend", `{"lease_id":"`+id+`"}`).want(t, 200)
		w.reserve(`{"requirements":[{"key":"k1","amount":1}]}`).want(t, 200)
	}
	w.post("complete", `{"lease_id":"`+id+`","actuals":[{"key":"k2","actual_amount":1}]}`).
		want(t, 200)
	if err := w.limiter.SetLimits(t.Context(), weir.Subject{Resource: "odd"},
		[]weir.Limit{{Name: "key", Capacity: 9}}); err != nil {
		t.Fatal(err)
	}
	id = w.reserve(`{"entity":"acme","resource":"odd","costs":{"key":5}}`).body["lease_id"].(string)
	w.post("complete", `{"lease_id":"`+id+`","actuals":[{"key":3}]}`).want(t, 200)
	if got := w.available("acme", "odd", "key"); got != 6 {
		t.Errorf("%d left, want 6", got)
	}
}
