package cli

import (
	"bytes"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// replayOutcome is what a replay came to, as it is printed in JSON, and what a page shows besides.
type replayOutcome struct {
	*replay.Report

	// Compare is absent where nothing was compared.
	Compare *replay.Comparison `json:"compare,omitempty"`
	// Suggest is absent where nothing was to be suggested.
	Suggest *suggested `json:"suggest,omitempty"`

	// samples are those of the first and of the second replay; nil where nobody wants a page.
	samples [2]*replaySamples
}

// newReplayOutcome makes an outcome that is still empty. For a page, samples are kept.
func newReplayOutcome(withPage bool) *replayOutcome {
	o := &replayOutcome{}
	if withPage {
		o.samples = [2]*replaySamples{newReplaySamples(), newReplaySamples()}
	}
	return o
}

// watchers are told what the page wants to know of a replay.
func (o *replayOutcome) watchers(number int) []replay.Watcher {
	if o.samples[number] == nil {
		return nil
	}
	return []replay.Watcher{o.samples[number]}
}

// table prints the outcome for people.
func (o *replayOutcome) table(b *bytes.Buffer, drawn *chart.TextOptions) {
	if o.Compare != nil {
		o.compared(b, drawn)
		return
	}
	(&replayPrint{Report: o.Report, chart: drawn}).table(b)
	if o.Suggest != nil {
		o.Suggest.table(b)
	}
}
