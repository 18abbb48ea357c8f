package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"
)

// ledgerVariable names the TigerBeetle server, as it does for weir's own tests: its replicas' addresses,
// with commas between them.
const ledgerVariable = "WEIR_TEST_TIGERBEETLE"

// ledgerContest compares weir on TigerBeetle with TigerBeetle's own client, for so many callers.
type ledgerContest struct {
	name, title string
	callers     int
	labels      []string // by side
}

// The sides of a comparison on TigerBeetle.
const (
	ledgerWeir = iota
	ledgerRaw
)

// ledgerContests are the comparisons on TigerBeetle. They need a server, so they run only where -run names
// them.
func ledgerContests() []ledgerContest {
	var out []ledgerContest
	for _, n := range []int{1, 64, 512} {
		out = append(out, ledgerContest{
			name:    fmt.Sprintf("tigerbeetle/callers=%d", n),
			title:   "TigerBeetle: a lease of four limits, " + counted(n, "caller"),
			callers: n,
			labels:  []string{"weir, reserve + complete", "raw client, the same transfers"},
		})
	}
	return out
}

// ledgerAddresses are those of the server; none where nothing names one.
func ledgerAddresses() []string {
	if text := os.Getenv(ledgerVariable); text != "" {
		return strings.Split(text, ",")
	}
	return nil
}

// ledgerSide takes leases on a namespace of its own.
type ledgerSide interface {
	// lease reserves and completes with something else; to be denied is an error.
	lease(ctx context.Context) error
	sent() ledgerSent
	close() error
}

// ledgerSent is how many create_transfers calls a side has made, and of how many events.
type ledgerSent struct{ calls, events int64 }

// ledgerFigure is what one side came to in one run.
type ledgerFigure struct {
	leases, ns, cpu int64
	sent            ledgerSent
	half, most      int64 // nanoseconds that half of the leases, and 99 in 100 of them, took at most
}

// speed is how many leases there were in a second.
func (f *ledgerFigure) speed() int64 {
	if f.ns == 0 {
		return 0
	}
	return f.leases * int64(time.Second) / f.ns
}

// per is a number divided by the leases, in thousandths.
func (f *ledgerFigure) per(n int64) int64 { return n * 1000 / max(1, f.leases) }

// ledgerResult is what a comparison came to: a figure for each side in each run.
type ledgerResult struct {
	contest *ledgerContest
	setting *settings
	runs    [][]ledgerFigure
}

// runLedger lets weir take leases to see how many events they have, and then both sides in turn.
func runLedger(ctx context.Context, c *ledgerContest, s *settings) (*ledgerResult, error) {
	a := &ledgerArena{addresses: ledgerAddresses(), callers: c.callers, setting: s}
	warm, err := a.play(ctx, ledgerWeir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	a.model = warm
	a.profile = s.profile
	res := &ledgerResult{contest: c, setting: s}
	for run := range s.runs {
		figures := make([]ledgerFigure, len(c.labels))
		for k := range figures {
			i := (k + run) % len(figures)
			if figures[i], err = a.play(ctx, i); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", c.name, c.labels[i], err)
			}
			if i == ledgerWeir {
				a.model = figures[i]
			}
		}
		if err := sameLeases(&figures[ledgerWeir], &figures[ledgerRaw]); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		res.runs = append(res.runs, figures)
	}
	return res, nil
}

// sameLeases fails where one side made other calls than the other one. How often a lease moves the
// bucket's anchor is up to the clock, so the events may differ by a fiftieth.
func sameLeases(a, b *ledgerFigure) error {
	calls := [2]int64{a.per(a.sent.calls), b.per(b.sent.calls)}
	events := [2]int64{a.per(a.sent.events), b.per(b.sent.events)}
	if near(calls[0], calls[1]) && near(events[0], events[1]) {
		return nil
	}
	return fmt.Errorf("a lease was %s calls and %s events beside %s and %s; want the same",
		decimal(calls[0], 2), decimal(events[0], 2), decimal(calls[1], 2), decimal(events[1], 2))
}

// near is true for numbers that differ by less than a fiftieth.
func near(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/50 }

// ledgerArena is where the sides play.
type ledgerArena struct {
	addresses []string
	callers   int
	setting   *settings
	// model is weir's last figure, whose calls and events the raw side makes.
	model   ledgerFigure
	profile string // the file that gets a CPU profile of weir's next run; empty for none
}

// play opens a side, warms it up for a fifth of the time, measures it and closes it.
func (a *ledgerArena) play(ctx context.Context, i int) (f ledgerFigure, err error) {
	side, err := openLedgerSide(ctx, i, a)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, side.close()) }()
	if _, err := takeLeases(ctx, side, a.callers, a.setting.length/5); err != nil {
		return f, err
	}
	runtime.GC() // what was before is nobody's cost
	if i == ledgerWeir && a.profile != "" {
		stop, err := profileTo(a.profile)
		if err != nil {
			return f, err
		}
		a.profile = ""
		defer func() { err = errors.Join(err, stop()) }()
	}
	return takeLeases(ctx, side, a.callers, a.setting.length)
}

// profileTo starts a CPU profile, and returns what ends it.
func profileTo(file string) (stop func() error, err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// takeLeases lets so many callers take leases, each in its goroutine, until the time is over or one fails.
func takeLeases(
	ctx context.Context, side ledgerSide, callers int, length time.Duration,
) (ledgerFigure, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([][]int64, callers)
	var group sync.WaitGroup
	before, cpu, begun := side.sent(), processorTime(), time.Now()
	for i := range took {
		group.Go(func() {
			for ctx.Err() == nil {
				at := time.Now()
				if at.Sub(begun) >= length {
					return
				}
				if err := side.lease(ctx); err != nil {
					cancel(err)
					return
				}
				took[i] = append(took[i], time.Since(at).Nanoseconds())
			}
		})
	}
	group.Wait()
	f := ledgerFigure{ns: time.Since(begun).Nanoseconds(), cpu: processorTime() - cpu}
	all := slices.Concat(took...)
	if err := context.Cause(ctx); err != nil || len(all) == 0 {
		return f, errors.Join(err, errorIf(len(all) == 0, "no lease was taken"))
	}
	slices.Sort(all)
	after := side.sent()
	f.leases, f.sent = int64(len(all)), ledgerSent{after.calls - before.calls, after.events - before.events}
	f.half, f.most = all[(len(all)-1)/2], all[(len(all)-1)*99/100]
	return f, nil
}

func errorIf(is bool, text string) error {
	if is {
		return errors.New(text)
	}
	return nil
}

// matches reports whether -side names one of the sides: both are needed for the ratio, so both run.
func (c *ledgerContest) matches(labels *regexp.Regexp) bool {
	return slices.ContainsFunc(c.labels, labels.MatchString)
}
