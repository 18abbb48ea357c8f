package money_test

import (
	"testing"

	"github.com/weir-limiter/weir/internal/money"
)

func TestUnitOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]money.Unit{
		"usd":         {Currency: "USD"},
		"USD-per-day": {Currency: "USD"},
		"usd_micros":  {Currency: "USD", InMicros: true},
		"dollars":     {Currency: "USD"},
		"euros2":      {Currency: "EUR"},
		"spend":       {Currency: "units of the currency"},
		"cost_eur":    {Currency: "EUR"},
		"eur_cost":    {Currency: "EUR"},
		"micros":      {InMicros: true},
		"usd_cents":   {},
		"accost":      {},
		"rpm":         {},
		"":            {},
	} {
		if got := money.UnitOf(name); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	const micros, named = "; money is counted in whole millionths: write ",
		"; money is counted in whole millionths, in a limit with a name such as usd_micros: write "
	for _, c := range []struct{ limit, amount, want string }{
		{"usd_micros", "0.03", micros + "30000 for 0.03 USD"},
		{"usd_micros", "50.00", micros + "50000000 for 50.00 USD"},
		{"usd_micros", "$50", micros + "50000000 for 50 USD"},
		{"usd_micros", "50 €", micros + "50000000 for 50 USD"},
		{"usd_micros", "0.000001", micros + "1 for 0.000001 USD"},
		{"usd_micros", "999999999999.5", micros + "999999999999500000 for 999999999999.5 USD"},
		{"acme#gpt-4o#usd_micros", "0.5", micros + "500000 for 0.5 USD"},
		{"usd", "0.03", named + "30000 for 0.03 USD"},
		{"cost", "0.03", named + "30000 for 0.03 units of the currency"},

		// amounts that cannot be written in millionths
		{"usd_micros", "0.0000001", micros + "1000000 for 1 USD"},
		{"usd_micros", "1000000000000.5", micros + "1000000 for 1 USD"},
		{"usd_micros", "0.0", micros + "1000000 for 1 USD"},
		{"usd_micros", "-0.5", micros + "1000000 for 1 USD"},
		{"usd_micros", "5e-2", micros + "1000000 for 1 USD"},
		{"usd_micros", ".5", micros + "1000000 for 1 USD"},
		{"usd_micros", "fifty", micros + "1000000 for 1 USD"},
		{"usd_micros", "$", micros + "1000000 for 1 USD"},

		{"usd_micros", "", ""},
		{"usd_micros", "300", ""},
		{"usd_cents", "0.5", ""},
		{"usd#gpt-4o#rpm", "0.5", ""},
		{"rpm", "0.5", ""},
	} {
		if got := money.Hint(c.limit, c.amount); got != c.want {
			t.Errorf("%s, %q: got %q, want %q", c.limit, c.amount, got, c.want)
		}
	}
}
