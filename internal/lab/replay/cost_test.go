package replay

import (
	"math"
	"math/big"
	"testing"
)

func TestParseCost(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Cost{
		"1":                         {call: 1},
		"0":                         {},
		"007":                       {call: 7},
		"2*3":                       {call: 6},
		"input":                     {input: 1},
		"output*2":                  {output: 2},
		"total":                     {input: 1, output: 1},
		"3*input+15*output":         {input: 3, output: 15},
		"1 + 2 * total + input":     {call: 1, input: 3, output: 2},
		"0*input":                   {},
		"9223372036854775807":       {call: math.MaxInt64},
		"9223372036854775807*total": {input: math.MaxInt64, output: math.MaxInt64},
	} {
		got, err := ParseCost(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]error{
		"": errCostForm, "+": errCostForm, "1+": errCostForm, "prompt": errCostForm, "-1": errCostForm,
		"1.5": errCostForm, "1-input": errCostForm, "input*output": errCostForm, "2*3*input": errCostForm,
		"input*": errCostForm, "Input": errCostForm, "0x10": errCostForm, "1_000": errCostForm,
		"9223372036854775808":             errTooLarge,
		"4611686018427387904*2":           errTooLarge,
		"9223372036854775807+1":           errTooLarge,
		"input+9223372036854775807*total": errTooLarge,
	} {
		got, err := ParseCost(text)
		if err != want { //nolint:errorlint // These errors come unwrapped.
			t.Errorf("%q: got %+v, %v, want %v", text, got, err, want)
		}
	}
}

func TestCostUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cost          Cost
		input, output int64
		want          int64
		ok            bool
	}{
		{Cost{}, 5, 7, 0, true},
		{Cost{call: 2, input: 3, output: 15}, 10, 4, 92, true},
		{Cost{input: 1}, math.MaxInt64, 7, math.MaxInt64, true},
		{Cost{call: 1, input: 1}, math.MaxInt64, 0, 0, false},
		{Cost{input: 2}, math.MaxInt64/2 + 1, 0, 0, false},
		{Cost{input: 1, output: 1}, math.MaxInt64 - 3, 3, math.MaxInt64, true},
		{Cost{input: 1, output: 1}, math.MaxInt64 - 3, 4, 0, false},
		{Cost{output: math.MaxInt64}, 7, 0, 0, true},
	} {
		got, ok := c.cost.units(c.input, c.output)
		if got != c.want || ok != c.ok {
			t.Errorf("%v of %d and %d: got %d, %v, want %d, %v",
				c.cost, c.input, c.output, got, ok, c.want, c.ok)
		}
	}
}

// TestBuiltinCosts checks that a flag replaces the built-in cost of a name.
func TestBuiltinCosts(t *testing.T) {
	t.Parallel()
	f := Costs{}
	if got, ok := f.find("tpm"); !ok || got.String() != "total" {
		t.Errorf("got %v, %v, want total", got, ok)
	}
	if got, ok := f.find("usd_micros"); !ok || got.String() != "3*input+15*output" {
		t.Errorf("got %v, %v, want 3*input+15*output", got, ok)
	}
	if got, ok := f.find("hourly"); ok {
		t.Errorf("got %v for an unknown name, want none", got)
	}
	if err := f.Set("tpm=5"); err != nil {
		t.Fatal(err)
	}
	if got, ok := f.find("tpm"); !ok || got.String() != "5" {
		t.Errorf("got %v, %v, want 5", got, ok)
	}
}

// FuzzParseCost checks that a cost that was read prints as text of the same meaning, and that its
// units are those of plain arithmetic.
func FuzzParseCost(f *testing.F) {
	for _, s := range []string{"1", "total", "3*input+15*output", " 2 * 3 + output", "1+", "9223372036854775807"} {
		f.Add(s, int64(10), int64(20))
	}
	f.Fuzz(func(t *testing.T, s string, input, output int64) {
		c, err := ParseCost(s)
		if err != nil {
			return
		}
		if again, err := ParseCost(c.String()); err != nil || again != c {
			t.Errorf("%q: got %v, %v from %s, want the same", s, again, err, c)
		}
		input, output = max(input, 0), max(output, 0)
		want := big.NewInt(c.call)
		want.Add(want, new(big.Int).Mul(big.NewInt(c.input), big.NewInt(input)))
		want.Add(want, new(big.Int).Mul(big.NewInt(c.output), big.NewInt(output)))
		got, ok := c.units(input, output)
		if ok != want.IsInt64() || ok && got != want.Int64() {
			t.Errorf("%q of %d and %d: got %d, %v, want %v", s, input, output, got, ok, want)
		}
	})
}
