package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// lines shows a replay where there is no terminal: a line now and then.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) show(s *liveState) {
	text := fmt.Sprintf("%3d %%  %s of %s calls: %s admitted, %s denied", s.percent(),
		thousands(s.done), thousands(s.total), thousands(s.admitted), thousands(s.denied))
	if by := s.deniers(3); len(by) > 0 {
		text += " (" + strings.Join(by, ", ") + ")"
	}
	if s.errors > 0 {
		text += ", " + plural(int(s.errors), "error", "errors")
	}
	l.note(text)
}

func (l *lines) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.to, printable(text)+"\n") // the report comes in any case
}

func (l *lines) end() {}

// deniers names the limits that denied most.
func (s *liveState) deniers(most int) []string {
	rows := slices.DeleteFunc(slices.Clone(s.rows), func(r liveRow) bool {
		return r.denied == 0 || r.shadow
	})
	slices.SortStableFunc(rows, func(a, b liveRow) int { return int(b.denied - a.denied) })
	var by []string
	for _, r := range rows[:min(len(rows), most)] {
		by = append(by, fmt.Sprintf("%s %s %s", r.entity, r.limit, thousands(r.denied)))
	}
	return by
}
