package conformance_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
)

func leaseID(t *testing.T, s string) weir.LeaseID {
	t.Helper()
	id, err := weir.ParseLeaseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

const ulid = "01JQ00000000000000000000ZZ"

func TestOpText(t *testing.T) {
	t.Parallel()
	id := leaseID(t, ulid)
	for _, c := range []struct {
		text string
		op   conformance.Op
	}{
		{"advance 1.5s", conformance.Op{Verb: "advance", By: 1500 * time.Millisecond}},
		{"advance -3s", conformance.Op{Verb: "advance", By: -3 * time.Second}},
		{"advance 250µs", conformance.Op{Verb: "advance", By: 250 * time.Microsecond}},
		{"reserve new acme-1/gpt rpm=1,tpm=500", conformance.Op{
			Verb:    "reserve",
			Charges: []weir.Charge{{Entity: "acme-1", Resource: "gpt", Costs: weir.Costs{"rpm": 1, "tpm": 500}}},
		}},
		{`reserve ` + ulid + ` "team/a"/"openai/gpt" - ""/"_ x" "a b"=-1`, conformance.Op{
			Verb: "reserve", ID: id,
			Charges: []weir.Charge{
				{Entity: "team/a", Resource: "openai/gpt"},
				{Resource: "_ x", Costs: weir.Costs{"a b": -1}},
			},
		}},
		{`reserve new bring/gpt - bring a=1:bucket,b=2:bucket/3/1m0s:shadow,c=4:window/5s,` +
			`d=6:concurrency/7s,e=8:budget/hour,f=9:budget/month/Europe/Berlin:shadow,g=0:"":shadow,h=1:"x y"`,
			conformance.Op{
				Verb: "reserve", Charges: []weir.Charge{{Entity: "bring", Resource: "gpt"}},
				Bring: []weir.Limit{
					{Name: "a", Kind: weir.Bucket, Capacity: 1},
					{Name: "b", Kind: weir.Bucket, Capacity: 2, RefillAmount: 3, RefillPeriod: time.Minute,
						Shadow: true},
					{Name: "c", Kind: weir.Window, Capacity: 4, Window: 5 * time.Second},
					{Name: "d", Kind: weir.Concurrency, Capacity: 6, Timeout: 7 * time.Second},
					{Name: "e", Kind: weir.Budget, Capacity: 8, Every: "hour"},
					{Name: "f", Kind: weir.Budget, Capacity: 9, Every: "month", Zone: "Europe/Berlin",
						Shadow: true},
					{Name: "g", Shadow: true},
					{Name: "h", Kind: "x y", Capacity: 1},
				},
			}},
		{"adjust " + ulid + " 3 tpm=20 ; - ; a=0,b=1", conformance.Op{
			Verb: "adjust", ID: id, Seq: 3, Totals: []weir.Costs{{"tpm": 20}, nil, {"a": 0, "b": 1}},
		}},
		{"adjust " + ulid + " -1", conformance.Op{Verb: "adjust", ID: id, Seq: -1}},
		{"complete " + ulid, conformance.Op{Verb: "complete", ID: id}},
		{"complete " + ulid + " -", conformance.Op{Verb: "complete", ID: id, Totals: []weir.Costs{nil}}},
		{"cancel " + ulid, conformance.Op{Verb: "cancel", ID: id}},
		{"extend " + ulid, conformance.Op{Verb: "extend", ID: id}},
		{"status acme -", conformance.Op{Verb: "status", Entity: "acme"}},
		{`status "-" "-"`, conformance.Op{Verb: "status", Entity: "-", Resource: "-"}},
		{`explain "\xff" gpt`, conformance.Op{Verb: "explain", Entity: "\xff", Resource: "gpt"}},
		{"configure lowered", conformance.Op{Verb: "configure", Set: "lowered"}},
	} {
		got, err := conformance.ParseOp(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if !reflect.DeepEqual(got, c.op) {
			t.Errorf("%s: got %#v, want %#v", c.text, got, c.op)
		}
		if got := c.op.String(); got != c.text {
			t.Errorf("String() = %s, want %s", got, c.text)
		}
	}
}

func TestParseOpRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "advance", "advance x", "advance 1s more", "dance 1s", "reserve", "reserve new",
		"reserve new bring x=1:bucket", "reserve xyz a/b -", "reserve new a/b", "reserve new a -",
		"reserve new a/b x", "reserve new a/b x=", "reserve new a/b x=1,x=2", "reserve new a/b x=1.5",
		"reserve new a/b - bring", "reserve new a/b - bring x=1", "reserve new a/b - bring x=1:window",
		"reserve new a/b - bring x=1:budget/day/", "reserve new a/b - bring x=1:bucket/1",
		"adjust " + ulid, "adjust " + ulid + " x", "adjust " + ulid + " 1 ;", "complete " + ulid + "x",
		"cancel", "cancel " + ulid + " -", "status a", `status "a`, "configure", "configure a b",
	} {
		if o, err := conformance.ParseOp(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, o)
		} else if !strings.Contains(err.Error(), `"`) {
			t.Errorf("%q: the error %q does not say where", text, err)
		}
	}
}

func FuzzParseOp(f *testing.F) {
	for _, seed := range []string{
		"advance 1.5s", "reserve new a/b x=1 c/d - bring x=1:bucket/2/3s,y=2:budget/day/UTC:shadow",
		`reserve ` + ulid + ` "a b"/"" "\x00"=-9`, "adjust " + ulid + " 3 x=1 ; -", "status a -",
		"configure base", "explain a b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := conformance.ParseOp(text)
		if err != nil {
			return
		}
		again, err := conformance.ParseOp(o.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", text, o, err)
		}
		if !reflect.DeepEqual(again, o) {
			t.Errorf("%q became %#v, then %#v", text, o, again)
		}
	})
}
