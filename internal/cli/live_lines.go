package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// lines shows a replay where there is no terminal: a line now and then.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) show(s *replay.State) {
	line := fmt.Sprintf("%3d %%  %s of %s calls: %s admitted, %s denied", percentDone(s),
		text.FormatInt(s.Done), text.FormatInt(s.Total), text.FormatInt(s.Admitted), text.FormatInt(s.Denied))
	if by := deniers(s, 3); len(by) > 0 {
		line += " (" + strings.Join(by, ", ") + ")"
	}
	if s.Errors > 0 {
		line += ", " + text.Plural(int(s.Errors), "error", "errors")
	}
	l.note(line)
}

func (l *lines) note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.to, text.Printable(line)+"\n") // the report comes in any case
}

func (l *lines) end() {}

// deniers names the limits that denied most.
func deniers(s *replay.State, most int) []string {
	rows := slices.DeleteFunc(slices.Clone(s.Rows), func(r replay.StateRow) bool {
		return r.Denied == 0 || r.Shadow
	})
	slices.SortStableFunc(rows, func(a, b replay.StateRow) int { return int(b.Denied - a.Denied) })
	var by []string
	for _, r := range rows[:min(len(rows), most)] {
		by = append(by, fmt.Sprintf("%s %s %s", rowEntity(r.LimitReport), r.Limit, text.FormatInt(r.Denied)))
	}
	return by
}
