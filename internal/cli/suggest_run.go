package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

// suggestCapacities replays a trace against a limits file, and looks for capacities that deny few enough.
func suggestCapacities(
	ctx context.Context, a *console.App, trace string, f *replayFlags, watchers ...replay.Watcher,
) (*replay.Report, *suggested, error) {
	file, err := f.createSuggested()
	if err != nil {
		return nil, nil, err
	}
	defer file.Discard()
	m, w, err := loadWorkload(ctx, a, trace, f)
	if err != nil {
		return nil, nil, err
	}
	r, err := f.replayAgainst(ctx, a, m, w, watchers)
	if err != nil {
		return nil, nil, err
	}
	o := &replay.SuggestOptions{Estimate: f.estimate, Retry: f.retries()}
	if t := a.Terminal(); t != nil {
		p := &suggestProgress{to: t.File, size: t.Size, now: time.Now}
		o.Progress = p.tell
		defer p.clear()
	}
	s, err := replay.Suggest(ctx, m.Definitions, w, f.suggest, o)
	if err != nil {
		return nil, nil, m.Locate(err)
	}
	return r, newSuggested(s, f.suggestFile), writeSuggested(file, m, s)
}

// createSuggested begins the file for the suggested limits; nil where none is wanted.
func (f *replayFlags) createSuggested() (*console.AtomicFile, error) {
	if f.suggestFile == "" {
		return nil, nil
	}
	return console.CreateWhole(suggestFileFlag, f.suggestFile)
}

const suggestFileFlag = "--suggest-file"

// writeSuggested writes the suggested limits as a limits file. Without a file it does nothing.
func writeSuggested(d *console.AtomicFile, m *manifest.Manifest, s *replay.Suggestions) error {
	if d == nil {
		return nil
	}
	text, err := manifest.Format(m.Namespace, s.Definitions)
	if err != nil {
		return err
	}
	if _, err := d.Out.Write(text); err != nil {
		return console.NameFile(d.Flag, d.Name, err)
	}
	return d.Commit()
}

// suggestProgress tells on a terminal how far a search for capacities is.
type suggestProgress struct {
	to   io.Writer
	size func() (columns, rows int)
	now  func() time.Time
	last time.Time
	told bool
}

// tell writes a line, now and then.
func (p *suggestProgress) tell(s replay.SuggestProgress) {
	now := p.now()
	if now.Sub(p.last) < console.ProgressEvery {
		return
	}
	p.last, p.told = now, true
	columns, _ := p.size()
	line := fmt.Sprintf("%d of %s sized, %s replays, %s calls", s.Sized,
		text.Plural(s.Limits, "limit", "limits"), text.FormatInt(s.Replays), text.FormatInt(s.Calls))
	_, _ = io.WriteString(p.to, "\r"+console.AnsiNoWrap+text.Cut(line, columns)+console.AnsiEndLine+console.AnsiWrap) // no loss
}

// clear takes the line away.
func (p *suggestProgress) clear() {
	if p.told {
		_, _ = io.WriteString(p.to, "\r"+console.AnsiEndLine) // no loss
	}
}
