package broken_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/broken"
	"github.com/weir-limiter/weir/driver"
)

// TestUsageStoresAreCaught is [TestStoreVariantsAreCaught] for usage. It also checks that there is a
// wrong store for each line that a case is about.
func TestUsageStoresAreCaught(t *testing.T) {
	t.Parallel()
	cases := conformance.UsageHarness{StoreHarness: right()}.UsageCases()
	breaks := map[string]bool{}
	var rows []string
	for _, v := range broken.UsageStores() {
		breaks[v.Breaks] = true
		h := conformance.UsageHarness{StoreHarness: right()}
		open := h.Open
		h.Open = func(t conformance.T, s conformance.Setup) driver.Store {
			t.Helper()
			return v.Wrap(open(t, s))
		}
		own, others := matching(h.UsageCases(), v.Breaks)
		by := caught(t, own, h.Service(t), len(own))
		if len(by) == 0 {
			t.Errorf("%s (%s): not caught by any of the %d cases about it; by %q", v.Name, v.Breaks,
				len(own), caught(t, others, h.Service(t), 3))
			continue
		}
		rows = append(rows, fmt.Sprintf("%-5s %-50s %s (%d of %d)", v.Breaks, v.Name, by[0], len(by), len(own)))
	}
	for _, c := range cases {
		if !breaks[c.Line] {
			t.Errorf("no variant breaks line %s, which %q is about", c.Line, c.Title())
		}
	}
	slices.Sort(rows)
	t.Logf("%d wrong stores caught:\n%s", len(rows), strings.Join(rows, "\n"))
}

// TestRightUsagePasses is [TestRightModelPasses] for usage.
func TestRightUsagePasses(t *testing.T) {
	t.Parallel()
	h := conformance.UsageHarness{StoreHarness: right()}
	for _, c := range h.UsageCases() {
		if r := conformance.Record(t, func(t conformance.T) { c.Run(t, h.Service(t)) }); r.Failed {
			t.Errorf("%s: %q", c.Title(), r.Messages)
		}
	}
}
