package cli

import (
	"fmt"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/text"
)

// sections show the capacities that were suggested, if any were asked for.
func (s *suggested) sections() []chart.Section {
	if s == nil {
		return nil
	}
	t := pageTable(s.limitsTable())
	t.Note = fmt.Sprintf("As they are, the limits deny %s of %s when they come (%s %%); "+
		"as suggested, together they deny %s (%s %%).", text.FormatInt(s.DeniedNow),
		text.Plural(int(s.Calls), "call", "calls"), s.DeniedNowPercent, text.FormatInt(s.Denied), s.DeniedPercent)
	for _, l := range s.LeftOut {
		t.Note += " " + l.Field + " stays: " + l.Why + "."
	}
	return []chart.Section{{
		Title: "Suggested capacities",
		Note: fmt.Sprintf("They deny at most %s %% of the calls, which is %s. Everything else on this page is "+
			"about the limits as they are.", s.Share, text.FormatInt(s.MayDeny)),
		Table: t,
	}}
}
