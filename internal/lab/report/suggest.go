package report

import (
	"bytes"
	"fmt"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// Suggested are suggested capacities, and the file that they were written to, if any.
type Suggested struct {
	*replay.Suggestions

	file string
}

// NewSuggested returns suggestions that were written to a file; empty for none.
func NewSuggested(s *replay.Suggestions, file string) *Suggested { return &Suggested{s, file} }

// print prints the suggestions, if there are any.
func (s *Suggested) print(b *bytes.Buffer) {
	if s == nil {
		return
	}
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
	fmt.Fprintf(b, "the limits as they are deny %s of %s on arrival (%s %%)\n",
		text.FormatInt(s.DeniedNow), text.Plural(int(s.Calls), "call", "calls"), s.DeniedNowPercent)
	fmt.Fprintf(b, "the suggested limits together deny %s of %s (%s %%); "+
		"each alone may deny %s %% of its calls\n", text.FormatInt(s.Denied),
		text.Plural(int(s.Calls), "call", "calls"), s.DeniedPercent, s.EachMayDeny)
	if s.file == "" {
		fmt.Fprintf(b, "%s FILE writes them as a limits file\n", SuggestFileFlag)
	} else {
		fmt.Fprintf(b, "they are in %s\n", text.Printable(s.file))
	}
}

// limitsTable has a row for each limit that was sized.
func (s *Suggested) limitsTable() *text.Table {
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

// capacityText returns a capacity, with the refill of a bucket if that is another number.
func capacityText(kind weir.Kind, capacity, refill int64) string {
	if kind != weir.Bucket || refill == capacity {
		return text.FormatInt(capacity)
	}
	return text.FormatInt(capacity) + ", refill " + text.FormatInt(refill)
}

// sections returns the sections about the suggested capacities, if there are any.
func (s *Suggested) sections() []chart.Section {
	if s == nil {
		return nil
	}
	t := pageTable(s.limitsTable())
	t.Note = fmt.Sprintf("The limits as they are deny %s of %s on arrival (%s %%); "+
		"the suggested limits together deny %s (%s %%).", text.FormatInt(s.DeniedNow),
		text.Plural(int(s.Calls), "call", "calls"), s.DeniedNowPercent, text.FormatInt(s.Denied), s.DeniedPercent)
	for _, l := range s.LeftOut {
		t.Note += " " + l.Field + " stays: " + l.Why + "."
	}
	return []chart.Section{{
		Title: "Suggested capacities",
		Note: fmt.Sprintf("They deny at most %s %% of the calls, which is %s. The rest of this page is about the "+
			"limits as they are.", s.Share, text.FormatInt(s.MayDeny)),
		Table: t,
	}}
}

// SuggestFileFlag is the flag that names the file for suggested limits.
const SuggestFileFlag = "--suggest-file"
