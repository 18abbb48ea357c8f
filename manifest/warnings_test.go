package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/manifest"
)

// TestWarnings checks which limits look like money in whole units.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, limit, want string }{
		{"usd", "{kind: budget, every: month, capacity: 50}", "looks like 50 USD, and a limit counts only whole numbers: " +
			"to count calls that cost less than one, count in millionths, such as usd_micros with a capacity of 50000000"},
		{"USD-per-day", "{kind: window, capacity: 5, window: 86400}", "such as usd_micros with a capacity of 5000000"},
		{"monthly.eur", "{capacity: 99999}", "such as eur_micros with a capacity of 99999000000"},
		{"dollars", "{capacity: 20}", "looks like 20 USD"},
		{"euros2", "{capacity: 20}", "looks like 20 EUR"},
		{"cost", "{capacity: 20}", "looks like 20 units of the currency"},
		{"usd_spend", "{capacity: 20}", "looks like 20 USD"},
		{"spend_usd", "{capacity: 20}", "looks like 20 USD"},
		{"usd_micros", "{kind: budget, every: month, capacity: 50}", "is 50 millionths: if 50 USD are meant, write 50000000"},
		{"usd_micros", "{kind: budget, every: month, capacity: 99999}", "is 99999 millionths"},

		{"usd_micros", "{kind: budget, every: month, capacity: 100000}", ""},
		{"usd", "{kind: budget, every: month, capacity: 50000000}", ""},
		{"usd_cents", "{kind: budget, every: month, capacity: 5000}", ""},
		{"usd", "{kind: concurrency, timeout: 60, capacity: 5}", ""},
		{"micros", "{capacity: 5}", ""},
		{"accost", "{capacity: 5}", ""},
		{"rpm", "{capacity: 60}", ""},
	} {
		file := "version: 1\nresources:\n  gpt-4o:\n    limits:\n      " + c.name + ":\n        " + c.limit + "\n"
		m, err := manifest.Parse("limits.yaml", []byte(file))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := m.Warnings()
		if c.want == "" {
			if len(got) != 0 {
				t.Errorf("%s %s: got %v, want no warning", c.name, c.limit, got)
			}
			continue
		}
		capacity := strings.Index(c.limit, "capacity") + 9
		prefix := fmt.Sprintf("limits.yaml:6:%d: warning: resources.gpt-4o.limits.%s.capacity ", capacity, c.name)
		if len(got) != 1 || !strings.HasPrefix(got[0].String(), prefix) || !strings.Contains(got[0].Reason, c.want) {
			t.Errorf("%s %s: got %v, want %s… %s", c.name, c.limit, got, prefix, c.want)
		}
	}
}

// TestWarningsInOrder checks that warnings of both sorts are in the order of the file.
func TestWarningsInOrder(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse("limits.yaml", []byte(`version: 1
entities:
  acme: {resources: {gpt-4o: {limits: {usd: {capacity: 1}}}}}
resources:
  z: {limits: {usd: {capacity: 2}}}
  a: {limits: {eur: {capacity: 4}, usd: {capacity: 3}}}
system: {limits: {cost: {capacity: 5}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range m.Warnings() {
		got = append(got, fmt.Sprintf("%d:%d=%s", w.Line, w.Column, w.Value))
	}
	if want := "3:31=usd 3:46=1 5:7=usd 5:22=2 6:7=eur, usd 6:22=4 6:42=3 7:26=5"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}
