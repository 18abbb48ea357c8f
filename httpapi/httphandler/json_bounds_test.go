package httphandler

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/apijson"
)

// hostileBodies returns bodies near the largest size, filled with what no valid request has.
func hostileBodies() map[string]string {
	const lease, size = `{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV",`, 1 << 20
	fill := func(before, item, after string) string {
		n := min(maxMembers, size/(len(item)+1))
		return before + strings.Repeat(item+",", n-1) + item + after
	}
	numbered := func(n int, format string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(items, ",")
	}
	long := strings.Repeat("é", 480)
	return map[string]string{
		"one short key":  fill(`{"requirements":[`, `{"key":"k","amount":1}`, `]}`),
		"one long key":   fill(`{"requirements":[`, `{"key":"`+long+`","amount":1}`, `]}`),
		"other keys":     `{"requirements":[` + numbered(maxMembers, `{"key":"`+long+`%d","amount":1}`) + `]}`,
		"charges":        fill(`{"charges":[`, `{"entity":"a","resource":"b","costs":{`+numbered(99, `"c%d":1`)+`}}`, `]}`),
		"costs":          `{"entity":"a","resource":"b","costs":{` + numbered(maxMembers, `"`+long+`%d":1`) + `}}`,
		"bad costs":      `{"entity":"a","resource":"b","costs":{` + numbered(maxMembers, `"`+long+`%d":"1"`) + `}}`,
		"unknown fields": `{` + numbered(maxMembers, `"`+long+`%d":1`) + `}`,
		"bad limits":     `{"limits":{` + numbered(maxMembers, `"l%d":{`+strings.ReplaceAll(numbered(99, `"c%d":1`), "%", "%%")+`}`) + `}}`,
		"one flat total": fill(lease+`"actuals":[`, `{"key":"`+long+`","actual_amount":1}`, `]}`),
		"totals":         fill(lease+`"actuals":[`, `{`+numbered(99, `"c%d":1`)+`}`, `]}`),
		"bad totals":     fill(lease+`"actuals":[`, `{`+numbered(99, `"c%d":"1"`)+`}`, `]}`),
	}
}

// readCompleteOrReserve reads a body with a lease ID as a complete, and any other as a reserve.
func readCompleteOrReserve(body string) error {
	var d bodyReader
	if strings.Contains(body, "lease_id") {
		return d.update([]byte(body), new(completeBody()))
	}
	_, err := d.reserve([]byte(body))
	return err
}

// TestHostileBodiesAreCheap counts the allocations for hostile bodies: about one for a member that
// is skipped, and nothing that grows with the square of the number of members.
func TestHostileBodiesAreCheap(t *testing.T) {
	const most = 8 * maxMembers
	for name, body := range hostileBodies() {
		var err error
		allocations := testing.AllocsPerRun(3, func() { err = readCompleteOrReserve(body) })
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		t.Logf("%-14s %7d bytes: %5.0f allocations, %d mistakes", name, len(body), allocations,
			len(apijson.FaultsOf(err)))
		if allocations > most {
			t.Errorf("%s: %d bytes made %.0f allocations, at most %d", name, len(body), allocations, most)
		}
		if faults := len(apijson.FaultsOf(err)); faults > apijson.MaxMistakes {
			t.Errorf("%s: %d mistakes", name, faults)
		}
	}
}

// TestRequestBounds checks that a value above a bound is refused with the bound, and that a value
// at the bound is accepted.
func TestRequestBounds(t *testing.T) {
	t.Parallel()
	items := func(n int, format string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(list, ",")
	}
	const lease = `{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV",`
	for _, c := range []struct {
		field       string
		most, given int
		before      string
		item        string
		after       string
	}{
		{"charges", 16, 17, `{"charges":[`, `{"entity":"a%d","resource":"b"}`, `]}`},
		{"requirements", 16, 900, `{"requirements":[`, `{"key":"k%d","amount":1}`, `]}`},
		{"costs", 32, 33, `{"entity":"a","resource":"b","costs":{`, `"c%d":1`, `}}`},
		{"charges[0].costs", 32, 500, `{"charges":[{"entity":"a","resource":"b","costs":{`, `"c%d":1`, `}}]}`},
		{"actuals", 16, 17, lease + `"actuals":[`, `{"c%d":1}`, `]}`},
		{"actuals", 16, 1024, lease + `"actuals":[`, `{"key":"k%d","actual_amount":1}`, `]}`},
	} {
		read := func(n int) error { return readCompleteOrReserve(c.before + items(n, c.item) + c.after) }
		if err := read(c.most); err != nil {
			t.Errorf("%d %s: %v", c.most, c.field, err)
		}
		want := fmt.Sprintf("weir: invalid: %s %q: a request has at most %d", c.field, fmt.Sprint(c.given), c.most)
		if err := read(c.given); err == nil || err.Error() != want {
			t.Errorf("%d %s: %v, want %s", c.given, c.field, err, want)
		}
	}
}
