package apijson

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// walkValue visits a whole document, as no single request does.
func walkValue(v *value, visit func(v *value)) error {
	visit(v)
	if what := v.what(); what != "an object" && what != "an array" {
		return nil
	}
	var inner error
	err := v.each(func(m *value) bool {
		inner = walkValue(m, visit)
		return inner == nil
	})
	return errors.Join(err, inner)
}

func TestValuePaths(t *testing.T) {
	t.Parallel()
	v, err := parseDocument([]byte(` { "a" : [ 1 , {"b.c":"x\"]}\\"}, [ ] ,-2.5e-3] ,"d":{ } , "\u0065":null,"f":true}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := walkValue(v, func(v *value) {
		if what := v.what(); what != "an object" && what != "an array" {
			got = append(got, v.path()+" "+string(v.text))
		} else {
			got = append(got, v.path()+" "+what)
		}
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"body an object", "a an array", "a[0] 1", "a[1] an object", `a[1].b.c "x\"]}\\"`,
		"a[2] an array", "a[3] -2.5e-3", "d an object", "e null", "f true",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A repeated name is found at any depth, however it is written, and only in one object.
func TestRepeatedNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"b":2}`: "",
		`{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}`: "",
		`{"a":1,"A":2}`:                       "",
		`{"a":1,"a":1}`:                       "a",
		`{"a":1,"\u0061":1}`:                  "a",
		`{"a":[0,{"b":{"c":1,"d":2,"c":3}}]}`: "a[1].b.c",
		`[[[{"":1,"":2}]]]`:                   "body[0][0][0].",
	} {
		v, err := parseDocument([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		err = walkValue(v, func(*value) {})
		e, _ := errors.AsType[*weir.Error](err)
		if (err != nil) != (want != "") || err != nil &&
			(e.Field != want || e.Reason != "is given twice") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A hostile document costs no more than its length.
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
		v, err := parseDocument([]byte(data))
		if err == nil {
			_, err = parseReserve(v)
		}
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
	_, err := parseDocument([]byte(data))
	if err == nil || !strings.Contains(err.Error(), "exceeded max depth") {
		t.Errorf("%v", err)
	}
}

// Limits are written as they are read, to the millisecond.
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
		text, err := json.Marshal(LimitSet{Limits: LimitsOf([]weir.Limit{normal})})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadLimitSet(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := got[0].Normalize(); err != nil || !again.Same(normal) {
			t.Errorf("%s became %+v (%v), was %+v", text, got, err, normal)
		}
	}
}

func TestSecondsNumber(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Millisecond: "0.001", 10 * time.Millisecond: "0.01", 100 * time.Millisecond: "0.1",
		time.Second: "1", 1001 * time.Millisecond: "1.001", 1250 * time.Millisecond: "1.25",
		time.Minute: "60", 100 * time.Second: "100",
	} {
		if got := secondsNumber(d); string(got) != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestCeilUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		-1: 0, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2,
		math.MaxInt64: math.MaxInt64/1_000_000 + 1,
	} {
		if got := CeilUnits(d, time.Millisecond); got != want {
			t.Errorf("%d is %d milliseconds, want %d", d, got, want)
		}
	}
}

// fuzzSeeds are bodies of every form, good and bad.
func fuzzSeeds() []string {
	const id = `"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"`
	return []string{
		``, `{}`, `null`, `[]`, `{"a":1,"a":2}`, `{"entity":"a","resource":"b","costs":{"rpm":1}}`,
		`{` + id + `,"charges":[{"entity":"a","resource":"b","costs":{"x":9223372036854775807}},{}]}`,
		`{"requirements":[{"key":"b","amount":1},{"key":"a","amount":2}]}`,
		`{"entity":"a","resource":"b","limits":{"rpm":{"capacity":1,"refill_period":0.5,"enforce":false}}}`,
		`{"limits":{"w":{"kind":"window","capacity":1,"window":5},"c":{"kind":"concurrency","timeout":3}}}`,
		`{` + id + `,"seq":1,"totals":{"rpm":1}}`, `{` + id + `,"actuals":[{"a":1},{}]}`,
		`{` + id + `,"actuals":[{"key":"a","actual_amount":1}]}`, `{` + id + `,"actuals":[{"key":1}]}`,
		"{\"entity\":\"\xff\"}", `{"entity":"\ud800"}`, `{"costs":{"a":1e5}}`, `{"costs":{"a":-0}}`,
	}
}

// FuzzReserveBody holds the reader against encoding/json: what it takes, the other takes too, and
// understands in the same way; what it refuses, it refuses with a field and a reason.
func FuzzReserveBody(f *testing.F) {
	for _, s := range fuzzSeeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := parseDocument(data)
		if (err == nil) != (json.Valid(data) && strings.ToValidUTF8(string(data), "") == string(data)) {
			t.Fatalf("%v, but valid is %v", err, json.Valid(data))
		}
		if err != nil {
			checkFaults(t, err)
			return
		}
		r, err := parseReserve(v)
		if err != nil {
			checkFaults(t, err)
			return
		}
		var body ReserveRequest
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&body); err != nil {
			t.Fatalf("encoding/json refuses %s: %v", data, err)
		}
		compareReserve(t, r, &body)
	})
}

func checkFaults(t *testing.T, err error) {
	t.Helper()
	faults := FaultsOf(err)
	if len(faults) == 0 || len(faults) > MaxMistakes {
		t.Fatalf("%d faults in %v", len(faults), err)
	}
	for _, e := range faults {
		if e.Code != weir.Invalid || e.Reason == "" || len(e.Value) > 100 {
			t.Fatalf("%#v", e)
		}
	}
}

func compareReserve(t *testing.T, r *Reserve, body *ReserveRequest) {
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
	slices.SortFunc(body.Requirements, func(a, b Requirement) int {
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

// FuzzSettleBody is the same for the bodies of complete.
func FuzzSettleBody(f *testing.F) {
	for _, s := range fuzzSeeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := parseDocument(data)
		if err != nil {
			return
		}
		for _, other := range []Update{NewAdjust(), {}} {
			if err := parseUpdate(v, &other); err != nil {
				checkFaults(t, err)
			}
		}
		r := new(NewComplete())
		if err := parseUpdate(v, r); err != nil {
			checkFaults(t, err)
			return
		}
		var body CompleteRequest
		if err := json.Unmarshal(data, &body); err != nil {
			t.Fatalf("encoding/json refuses %s: %v", data, err)
		}
		if body.LeaseID != r.LeaseID {
			t.Fatalf("lease %s, encoding/json read %s", r.LeaseID, body.LeaseID)
		}
		compareActuals(t, r, body.Actuals)
	})
}

func compareActuals(t *testing.T, r *Update, text Totals) {
	t.Helper()
	one := weir.Costs{}
	many := []weir.Costs{}
	flat := []ActualAmount{}
	var read []flatAmount
	switch {
	case text == nil:
		if r.Totals != nil || r.flat != nil {
			t.Fatalf("%+v without actuals", r)
		}
	case json.Unmarshal(text, &one) == nil && bytes.TrimSpace(text)[0] == '{':
		if !reflect.DeepEqual(r.Totals, []weir.Costs{one}) {
			t.Fatalf("%v, encoding/json read %v", r.Totals, one)
		}
	case json.Unmarshal(text, &many) == nil:
		if len(r.flat) > 0 || len(many) > 0 && !reflect.DeepEqual(r.Totals, many) {
			t.Fatalf("%v %v, encoding/json read %v", r.Totals, r.flat, many)
		}
	case json.Unmarshal(text, &flat) == nil:
		named := weir.Costs{}
		for _, a := range flat {
			named[a.Key+"#key#units"] = a.ActualAmount
			read = append(read, flatAmount{a.Key, a.ActualAmount})
		}
		if !reflect.DeepEqual(r.flat, read) || !reflect.DeepEqual(r.Totals, []weir.Costs{named}) {
			t.Fatalf("%v as %v, encoding/json read %v", r.flat, r.Totals, flat)
		}
	default:
		t.Fatalf("encoding/json reads none of the forms in %s", text)
	}
}

func BenchmarkReadReserve(b *testing.B) {
	data := []byte(`{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","entity":"acme","resource":"openai/gpt-4o",` +
		`"costs":{"rpm":1,"tpm":500}}`)
	b.ReportAllocs()
	for b.Loop() {
		v, err := parseDocument(data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := parseReserve(v); err != nil {
			b.Fatal(err)
		}
	}
}
