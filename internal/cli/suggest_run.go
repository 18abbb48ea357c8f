package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

// suggest replays a trace against a limits file, and looks for capacities that deny few enough.
func (a *app) suggest(
	ctx context.Context, trace string, f *replayFlags, watchers ...replay.Watcher,
) (*replay.Report, *suggested, error) {
	file, err := f.createSuggested()
	if err != nil {
		return nil, nil, err
	}
	defer file.abandon()
	m, w, err := a.load(ctx, trace, f)
	if err != nil {
		return nil, nil, err
	}
	r, err := a.replayAgainst(ctx, m, w, f, watchers)
	if err != nil {
		return nil, nil, err
	}
	o := &replay.SuggestOptions{Estimate: f.estimate, Retry: f.retries()}
	if t := a.terminal(); t != nil {
		p := &suggestProgress{to: t.file, size: t.size, now: time.Now}
		o.Progress = p.tell
		defer p.clear()
	}
	s, err := replay.Suggest(ctx, m.Definitions, w, f.suggest, o)
	if err != nil {
		return nil, nil, m.Locate(err)
	}
	return r, &suggested{s, f.suggestFile}, file.writeLimits(m, s)
}

// createSuggested begins the file for the suggested limits; nil where none is wanted.
func (f *replayFlags) createSuggested() (*wholeFile, error) {
	if f.suggestFile == "" {
		return nil, nil
	}
	return createWhole(suggestFileFlag, f.suggestFile)
}

const suggestFileFlag = "--suggest-file"

// writeLimits writes the suggested limits as a limits file. Without a file it does nothing.
func (d *wholeFile) writeLimits(m *manifest.Manifest, s *replay.Suggestions) error {
	if d == nil {
		return nil
	}
	text, err := manifest.Format(m.Namespace, s.Definitions)
	if err != nil {
		return err
	}
	if _, err := d.out.Write(text); err != nil {
		return named(d.flag, d.name, err)
	}
	return d.finish()
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
	if now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.told = now, true
	columns, _ := p.size()
	line := fmt.Sprintf("%d of %s sized, %s replays, %s calls", s.Sized,
		text.Plural(s.Limits, "limit", "limits"), text.FormatInt(s.Replays), text.FormatInt(s.Calls))
	_, _ = io.WriteString(p.to, "\r"+ansiNoWrap+text.Cut(line, columns)+ansiEndLine+ansiWrap) // no loss
}

// clear takes the line away.
func (p *suggestProgress) clear() {
	if p.told {
		_, _ = io.WriteString(p.to, "\r"+ansiEndLine) // no loss
	}
}
