package cli

import (
	"bytes"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/text"
)

// writeStatuses prints limits as they stand, with what was requested of them where something was.
func writeStatuses(b *bytes.Buffer, all []weir.LimitStatus, requested bool) {
	t := text.Table{Heads: []string{
		"ENTITY", "RESOURCE", "LIMIT", "KIND", "LEVEL",
	}}
	if requested {
		t.Heads = append(t.Heads, ">REQUESTED")
	}
	t.Heads = append(t.Heads, ">AVAILABLE", ">CAPACITY")
	notes := make([]string, len(all))
	for i := range all {
		notes[i] = statusNote(&all[i])
	}
	noted := strings.Join(notes, "") != ""
	if noted {
		t.Heads = append(t.Heads, "NOTE")
	}
	for i := range all {
		s := &all[i]
		cells := []string{s.Entity, s.Resource, s.Limit, string(s.Kind), string(s.Level)}
		if requested {
			cells = append(cells, text.FormatInt(s.Requested))
		}
		cells = append(cells, text.FormatInt(s.Available), text.FormatInt(s.Capacity))
		if noted {
			cells = append(cells, notes[i])
		}
		t.Add(cells...)
	}
	t.Write(b)
}

// statusNote is what the figures of a limit do not say.
func statusNote(s *weir.LimitStatus) string {
	var notes []string
	if s.Exceeded {
		note := "exceeded"
		if s.RetryAfter > 0 {
			note += ": fits after "
			if s.AtLeast {
				note += "at least "
			}
			note += s.RetryAfter.String()
		}
		notes = append(notes, note)
	}
	if s.Available < 0 {
		notes = append(notes, "in debt")
	}
	if s.Shadow {
		notes = append(notes, "shadow: never denies")
	}
	if s.Superseded {
		notes = append(notes, "of limits that are not in force")
	}
	return strings.Join(notes, ", ")
}
