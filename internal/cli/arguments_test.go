package cli

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
)

func TestParseAmount(t *testing.T) {
	t.Parallel()
	const (
		whole = "must be a whole number in decimal digits"
		most  = "must be at most 9223372036854775807"
	)
	for _, c := range []struct {
		arg    string
		name   string
		n      int64
		field  string // the field with the mistake; empty for none
		value  string
		reason string
	}{
		{arg: "rpm=1", name: "rpm", n: 1},
		{arg: "rpm=0", name: "rpm"},
		{arg: "rpm=007", name: "rpm", n: 7},
		{arg: "rpm=9223372036854775807", name: "rpm", n: math.MaxInt64},
		{arg: "a=b#m#rpm=1", name: "a=b#m#rpm", n: 1},
		{arg: "a#m#9=1", name: "a#m#9", n: 1}, // the library checks names
		{arg: "rpm=9223372036854775808", field: "costs.rpm", value: "9223372036854775808", reason: most},
		{arg: "rpm=-1", field: "costs.rpm", value: "-1", reason: "must not be negative"},
		{arg: "rpm=-0", field: "costs.rpm", value: "-0", reason: whole},
		{arg: "rpm=+1", field: "costs.rpm", value: "+1", reason: whole},
		{arg: "rpm=", field: "costs.rpm", reason: whole},
		{arg: "rpm= 1", field: "costs.rpm", value: " 1", reason: whole},
		{arg: "rpm=1e3", field: "costs.rpm", value: "1e3", reason: whole},
		{arg: "rpm=1_000", field: "costs.rpm", value: "1_000", reason: whole},
		{arg: "rpm=0x10", field: "costs.rpm", value: "0x10", reason: whole},
		{arg: "rpm=1=2", field: "costs.rpm", value: "1=2", reason: whole},
		{arg: "rpm=١", field: "costs.rpm", value: "١", reason: whole},
		{
			arg: "usd_micros=0.03", field: "costs.usd_micros", value: "0.03",
			reason: whole + "; money is counted in whole millionths: write 30000 for 0.03 USD",
		},
		{arg: "#=1", field: "costs", value: "#=1", reason: "must be NAME=N"},
		{arg: "rpm", field: "costs", value: "rpm", reason: "must be NAME=N"},
		{arg: "=1", field: "costs", value: "=1", reason: "must be NAME=N"},
		{arg: "", field: "costs", reason: "must be NAME=N"},
		{
			arg: "a=" + strings.Repeat("9", 80), field: "costs.a", value: strings.Repeat("9", 64) + "…",
			reason: most,
		},
		{arg: "a=\xff", field: "costs.a", value: "\uFFFD", reason: whole},
	} {
		name, n, err := parseAmount("costs", c.arg)
		want := &weir.Error{Code: weir.Invalid, Field: c.field, Value: c.value, Reason: c.reason}
		got, failed := errors.AsType[*weir.Error](err)
		if failed != (c.field != "") || failed && *got != *want {
			t.Errorf("%q: got error %v, want %v", c.arg, err, want)
		}
		if name != c.name || n != c.n {
			t.Errorf("%q: got %q and %d, want %q and %d", c.arg, name, n, c.name, c.n)
		}
	}
}

// FuzzParseAmount checks that an accepted amount has exactly the name and number that were written.
func FuzzParseAmount(f *testing.F) {
	for _, seed := range []string{"rpm=1", "tpm=9223372036854775807", "a=-1", "=", "a==1", "a=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		name, n, err := parseAmount("costs", arg)
		if err != nil {
			e, ok := errors.AsType[*weir.Error](err)
			if !ok || e.Field == "" || e.Reason == "" || name != "" || n != 0 {
				t.Fatalf("%q: got %q, %d and %v", arg, name, n, err)
			}
			return
		}
		digits := strings.TrimLeft(strings.TrimPrefix(arg, name+"="), "0")
		text := strconv.FormatInt(n, 10)
		if n < 0 || name == "" || digits != strings.TrimLeft(text, "0") {
			t.Errorf("%q: got %q and %d", arg, name, n)
		}
		if _, again, err := parseAmount("costs", name+"="+text); err != nil || again != n {
			t.Errorf("%q: got %d and %v, want %d again", arg, again, err, n)
		}
	})
}

func TestParseCharges(t *testing.T) {
	t.Parallel()
	one := weir.Costs{"rpm": 1}
	for _, c := range []struct {
		args string
		want *weir.Request // nil if it is refused
		err  string
	}{
		{args: "acme gpt", want: &weir.Request{Entity: "acme", Resource: "gpt", Costs: weir.Costs{}}},
		{args: "acme gpt rpm=1", want: &weir.Request{Entity: "acme", Resource: "gpt", Costs: one}},
		{args: "acme gpt rpm=1 + bot web", want: &weir.Request{Charges: []weir.Charge{
			{Entity: "acme", Resource: "gpt", Costs: one},
			{Entity: "bot", Resource: "web", Costs: weir.Costs{}},
		}}},
		{args: "acme", err: `resource "acme": must be ENTITY`},
		{args: "acme rpm=1", err: `resource "acme rpm=1": must be ENTITY`},
		{args: "+ gpt rpm=1 + + web", want: &weir.Request{Charges: []weir.Charge{
			{Entity: "+", Resource: "gpt", Costs: one},
			{Entity: "+", Resource: "web", Costs: weir.Costs{}},
		}}},
		{args: "+", err: `resource "+": must be ENTITY`},
		{args: "acme +", err: `charges[0].resource "acme": must be ENTITY`},
		{args: "acme gpt + + bot web", err: `charges[1].costs "web": must be NAME=N`},
		{args: "acme gpt rpm=1 + bot web rpm=x", err: `charges[1].costs.rpm "x": must be a whole`},
		{args: "acme gpt rpm=1 rpm=1", err: `costs.rpm "rpm=1": is given twice`},
	} {
		got, err := parseCharges(strings.Fields(c.args))
		if err != nil != (c.want == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: got error %v, want %q", c.args, err, c.err)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, want %+v", c.args, got, c.want)
		}
	}
}

func TestParseTotals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want []weir.Costs
		err  string
	}{
		{args: ""},
		{args: "tpm=5 rpm=0", want: []weir.Costs{{"tpm": 5, "rpm": 0}}},
		{args: "tpm=5 + tpm=6", want: []weir.Costs{{"tpm": 5}, {"tpm": 6}}},
		{args: "+ tpm=6", want: []weir.Costs{{}, {"tpm": 6}}},
		{args: "+", want: []weir.Costs{{}, {}}},
		{args: "tpm=5 + tpm", err: `totals[1] "tpm": must be NAME=N`},
		{args: "tpm", err: `totals "tpm": must be NAME=N`},
	} {
		got, err := parseTotals("totals", strings.Fields(c.args))
		if err != nil != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: got error %v, want %q", c.args, err, c.err)
		}
		if err == nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, want %+v", c.args, got, c.want)
		}
	}
}
