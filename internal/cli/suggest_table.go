package cli

import (
	"bytes"
	"fmt"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// suggested are capacities that deny few enough, and the file that they were written to, if any.
type suggested struct {
	*replay.Suggestions

	file string
}

// newSuggested says which file the suggestions were written to; empty for none.
func newSuggested(s *replay.Suggestions, file string) *suggested { return &suggested{s, file} }

// table prints the suggestions.
func (s *suggested) table(b *bytes.Buffer) {
	fmt.Fprintf(b, "\nsuggested: capacities that deny at most %s %% of the calls, which is %s\n\n",
		s.Share, text.FormatInt(s.MayDeny))
	t := s.limitsTable()
	if len(s.Limits) > 0 {
		t.Write(b)
		b.WriteString("\n")
	}
	for _, l := range s.LeftOut {
		fmt.Fprintf(b, "%s stays: %s\n", text.Printable(l.Field), l.Why)
	}
	fmt.Fprintf(b, "as they are, the limits deny %s of %s when they come (%s %%)\n",
		text.FormatInt(s.DeniedNow), text.Plural(int(s.Calls), "call", "calls"), s.DeniedNowPercent)
	fmt.Fprintf(b, "as suggested, together they deny %s of %s (%s %%); "+
		"each alone may deny %s %% of its calls\n", text.FormatInt(s.Denied),
		text.Plural(int(s.Calls), "call", "calls"), s.DeniedPercent, s.EachMayDeny)
	if s.file == "" {
		fmt.Fprintf(b, "%s FILE writes them as a limits file\n", suggestFileFlag)
	} else {
		fmt.Fprintf(b, "they are in %s\n", text.Printable(s.file))
	}
}

// limitsTable has a row for each limit that was sized.
func (s *suggested) limitsTable() *text.Table {
	t := &text.Table{Heads: []string{
		"DECLARED AT", "LIMIT", "KIND", ">CALLS", ">NOW",
		">SUGGESTED", ">CHANGE %", ">DENIES NOW", ">ALONE",
		">TOGETHER",
	}}
	for _, l := range s.Limits {
		t.Add(l.Place, l.Limit, string(l.Kind), text.FormatInt(l.Calls),
			capacityText(l.Kind, l.Capacity, l.RefillAmount),
			capacityText(l.Kind, l.SuggestedCapacity, l.SuggestedRefillAmount), l.ChangePercent,
			text.FormatInt(l.DeniedNow), text.FormatInt(l.DeniedAlone), text.FormatInt(l.DeniedTogether))
	}
	return t
}

// capacityText is a capacity, with the refill of a bucket where that is another number.
func capacityText(kind weir.Kind, capacity, refill int64) string {
	if kind != weir.Bucket || refill == capacity {
		return text.FormatInt(capacity)
	}
	return text.FormatInt(capacity) + ", refill " + text.FormatInt(refill)
}
