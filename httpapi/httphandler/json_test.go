package httphandler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// walk calls visit for every value of a document, after the values inside it.
func (d *bodyReader) walk(visit func(path, text string)) {
	switch d.decoder.PeekKind() {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		d.each(func([]byte) { d.walk(visit) })
	default:
		d.value()
	}
	visit(d.path(), string(d.last))
}

func walkDocument(t *testing.T, text string, visit func(path, text string)) error {
	t.Helper()
	var d bodyReader
	if err := d.begin([]byte(text)); err != nil {
		t.Fatal(err)
	}
	d.walk(visit)
	return d.end()
}

func TestValuePaths(t *testing.T) {
	t.Parallel()
	const text = ` { "a" : [ 1 , {"b.c":"x\"]}\\","~0/":[{}]}, [ ] ,-2.5e-3] ,"d":{ } , "\u0065":null,"f":true}` + "\n"
	var got []string
	if err := walkDocument(t, text, func(path, text string) { got = append(got, path+" "+text) }); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a[0] 1", `a[1].b.c "x\"]}\\"`, "a[1].~0/[0] {}", "a[1].~0/ [{}]",
		`a[1] {"b.c":"x\"]}\\","~0/":[{}]}`, "a[2] [ ]", "a[3] -2.5e-3",
		`a [ 1 , {"b.c":"x\"]}\\","~0/":[{}]}, [ ] ,-2.5e-3]`, "d { }", "e null", "f true",
		"body " + strings.TrimSpace(text),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRepeatedNames checks that a repeated name is found at any depth and in any spelling, but only
// within one object.
func TestRepeatedNames(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `"n%d":0,`, i)
	}
	for text, want := range map[string]string{
		`{"a":1,"b":2}`: "",
		`{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}`: "",
		`{"a":1,"A":2}`:                              "",
		`{"a":1,"a":1}`:                              "a",
		`{"a":1,"\u0061":1}`:                         "a",
		`{"a":[0,{"b":{"c":1,"d":2,"c":3}}]}`:        "a[1].b.c",
		`{"a":[[{"":1,"":2}]]}`:                      "a[0][0].",
		`{` + many.String() + `"a":1,"n0":1}`:        "n0",
		`{` + many.String() + `"a":1,"n99":1}`:       "n99",
		`{"a":{` + many.String() + `"N0":1},"n0":1}`: "",
	} {
		err := walkDocument(t, text, func(string, string) {})
		e, _ := errors.AsType[*weir.Error](err)
		if (err != nil) != (want != "") || err != nil &&
			(e.Field != want || e.Reason != "is given twice") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestDocumentMemory checks that the memory for a hostile document is bounded by its length.
func TestDocumentMemory(t *testing.T) {
	const size = 1 << 20
	for name, data := range map[string]string{
		"arrays":  `{"charges":[` + strings.Repeat("[],", size/3) + `[]]}`,
		"nested":  `{"charges":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
		"numbers": `{"costs":{"a":` + strings.Repeat("9", size) + `}}`,
		"members": `{` + strings.Repeat(`"a":1,`, size/6) + `"b":1}`,
		"strings": `{"entity":"` + strings.Repeat(`\u0041`, size/6) + `"}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := new(bodyReader).reserve([]byte(data))
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 8*size {
			t.Errorf("%s: %d bytes were allocated for %d", name, spent, len(data))
		}
		if err == nil && name != "strings" {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	data := `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`
	_, err := new(bodyReader).reserve([]byte(data))
	if err == nil || !strings.Contains(err.Error(), "exceeded max depth") {
		t.Errorf("%v", err)
	}
}

// TestLimitBodies checks that limits are written as they were read, to the millisecond.
func TestLimitBodies(t *testing.T) {
	t.Parallel()
	for _, l := range []weir.Limit{
		{Name: "a", Capacity: 1},
		{Name: "a", Capacity: math.MaxInt64 / 1000, RefillAmount: 7, RefillPeriod: time.Millisecond},
		{Name: "a", Capacity: 5, RefillPeriod: 1500 * time.Millisecond, Shadow: true},
		{Name: "a", Capacity: 5, RefillPeriod: 100 * 365 * 24 * time.Hour},
		{Name: "a", Kind: weir.Window, Capacity: math.MaxInt64, Window: time.Second},
		{Name: "a", Kind: weir.Concurrency, Capacity: 2, Timeout: time.Hour},
		{Name: "a", Kind: weir.Budget, Capacity: 2, Every: "week", Zone: "Europe/Berlin"},
	} {
		normal, err := l.Normalize()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(apijson.LimitSet{Limits: apijson.LimitsOf([]weir.Limit{normal})})
		if err != nil {
			t.Fatal(err)
		}
		got, err := new(bodyReader).limitSet(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := got[0].Normalize(); err != nil || !again.Same(normal) {
			t.Errorf("%s became %+v (%v), was %+v", text, got, err, normal)
		}
	}
}

// addSeeds adds valid and invalid bodies of every form.
func addSeeds(f *testing.F) {
	f.Helper()
	const id = `"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"`
	seeds := []string{
		``, `{}`, `null`, `[]`, `{"a":1,"a":2}`, `{"entity":"a","resource":"b","costs":{"rpm":1}}`,
		`{` + id + `,"charges":[{"entity":"a","resource":"b","costs":{"x":9223372036854775807}},{}]}`,
		`{"requirements":[{"key":"b","amount":1},{"key":"a","amount":2}]}`,
		`{"entity":"a","resource":"b","limits":{"rpm":{"capacity":1,"refill_period":0.5,"enforce":false}}}`,
		`{"limits":{"w":{"kind":"window","capacity":1,"window":5},"c":{"kind":"concurrency","timeout":3}}}`,
		`{` + id + `,"seq":1,"totals":{"rpm":1}}`, `{` + id + `,"actuals":[{"a":1},{}]}`,
		`{` + id + `,"actuals":[{"key":"a","actual_amount":1}]}`, `{` + id + `,"actuals":[{"key":1}]}`,
		"{\"entity\":\"\xff\"}", `{"entity":"\ud800"}`, `{"costs":{"a":1e5}}`, `{"costs":{"a":-0}}`,
		`{"\ud800":{"a":1},"costs":{"a":1,"\u0061":2}}`, `{"a":{}}}`, `{"a":tru}`, `{"costs":[{]}`,
	}
	for _, bodies := range ordinaryBodies() {
		seeds = append(seeds, bodies...)
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
}

// FuzzReserveBody compares the reader with encoding/json. A body that the reader accepts,
// encoding/json accepts with the same value. An error of the reader has a field and a reason.
func FuzzReserveBody(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) { readsReserve(t, data) })
}

// readsReserve compares both for one body, and reports whether the reader accepts it.
func readsReserve(t *testing.T, data []byte) bool {
	t.Helper()
	r, err := new(bodyReader).reserve(data)
	if (r != nil) != (json.Valid(data) && utf8.Valid(data)) {
		t.Fatalf("%v, but valid is %v", err, json.Valid(data))
	}
	if err != nil {
		checkFaults(t, err)
		return false
	}
	var body apijson.ReserveRequest
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		t.Fatalf("encoding/json refuses %s: %v", data, err)
	}
	compareReserve(t, r, &body)
	return true
}

func checkFaults(t *testing.T, err error) {
	t.Helper()
	faults := apijson.FaultsOf(err)
	if len(faults) == 0 || len(faults) > apijson.MaxMistakes {
		t.Fatalf("%d faults in %v", len(faults), err)
	}
	for _, e := range faults {
		if e.Code != weir.Invalid || e.Reason == "" || len(e.Value) > 100 {
			t.Fatalf("%#v", e)
		}
	}
}

func compareReserve(t *testing.T, r *reserveBody, body *apijson.ReserveRequest) {
	t.Helper()
	id := ""
	if !r.LeaseID.IsZero() {
		id = r.LeaseID.String()
	}
	keyed := body.Keyed || body.Requirements != nil
	got := []any{id, r.Entity, r.Resource, r.Costs, r.Keyed}
	want := []any{strings.ToUpper(body.LeaseID), body.Entity, body.Resource, body.Costs, keyed}
	for _, c := range r.Charges {
		got = append(got, c.Entity, c.Resource, c.Costs)
	}
	for _, c := range body.Charges {
		want = append(want, c.Entity, c.Resource, c.Costs)
	}
	slices.SortFunc(body.Requirements, func(a, b apijson.Requirement) int {
		return strings.Compare(a.Key, b.Key)
	})
	for _, q := range body.Requirements {
		want = append(want, q.Key, flatResource, weir.Costs{flatLimit: q.Amount})
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("read %q, encoding/json read %q", got, want)
	}
	if len(r.Limits) != len(body.Limits) {
		t.Fatalf("%d limits, encoding/json read %d", len(r.Limits), len(body.Limits))
	}
	for _, l := range r.Limits {
		b := body.Limits[l.Name]
		same := l.Kind == b.Kind && l.Capacity == b.Capacity && l.RefillAmount == b.RefillAmount &&
			l.Window == time.Duration(b.Window)*time.Second &&
			l.Timeout == time.Duration(b.Timeout)*time.Second &&
			l.Every == b.Every && l.Zone == b.Zone && l.Shadow == (b.Enforce != nil && !*b.Enforce)
		seconds, _ := b.RefillPeriod.Float64()
		if near := math.Abs(l.RefillPeriod.Seconds()-seconds) <= seconds*1e-9; !same || !near {
			t.Fatalf("limit %+v, encoding/json read %+v", l, b)
		}
	}
}

// FuzzSettleBody does the same as FuzzReserveBody for the bodies of complete.
func FuzzSettleBody(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) { readsComplete(t, data) })
}

// readsComplete compares both for one body, and reports whether the reader accepts it.
func readsComplete(t *testing.T, data []byte) bool {
	t.Helper()
	for _, other := range []updateBody{adjustBody(), {}} {
		if err := new(bodyReader).update(data, &other); err != nil {
			checkFaults(t, err)
		}
	}
	u := new(completeBody())
	if err := new(bodyReader).update(data, u); err != nil {
		checkFaults(t, err)
		return false
	}
	var body apijson.CompleteRequest
	if err := json.Unmarshal(data, &body); err != nil {
		t.Fatalf("encoding/json refuses %s: %v", data, err)
	}
	if body.LeaseID != u.leaseID {
		t.Fatalf("lease %s, encoding/json read %s", u.leaseID, body.LeaseID)
	}
	compareActuals(t, u, body.Actuals)
	return true
}

func compareActuals(t *testing.T, u *updateBody, text apijson.Totals) {
	t.Helper()
	one := weir.Costs{}
	many := []weir.Costs{}
	flat := []apijson.ActualAmount{}
	var read []flatAmount
	switch {
	case text == nil:
		if u.totals != nil || u.flat != nil {
			t.Fatalf("%+v without actuals", u)
		}
	case json.Unmarshal(text, &one) == nil && bytes.TrimSpace(text)[0] == '{':
		if !reflect.DeepEqual(u.totals, []weir.Costs{one}) {
			t.Fatalf("%v, encoding/json read %v", u.totals, one)
		}
	case json.Unmarshal(text, &many) == nil:
		if len(u.flat) > 0 || len(many) > 0 && !reflect.DeepEqual(u.totals, many) {
			t.Fatalf("%v %v, encoding/json read %v", u.totals, u.flat, many)
		}
	case json.Unmarshal(text, &flat) == nil:
		named := weir.Costs{}
		for _, a := range flat {
			named[a.Key+"#key#units"] = a.ActualAmount
			read = append(read, flatAmount{a.Key, a.ActualAmount})
		}
		if !reflect.DeepEqual(u.flat, read) || !reflect.DeepEqual(u.totals, []weir.Costs{named}) {
			t.Fatalf("%v as %v, encoding/json read %v", u.flat, u.totals, flat)
		}
	default:
		t.Fatalf("encoding/json reads none of the forms in %s", text)
	}
}

func BenchmarkReadReserve(b *testing.B) {
	data := []byte(`{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","entity":"acme","resource":"openai/gpt-4o",` +
		`"costs":{"rpm":1,"tpm":500}}`)
	var d bodyReader
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.reserve(data); err != nil {
			b.Fatal(err)
		}
	}
}
