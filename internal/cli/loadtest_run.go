package cli

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/lab/loadtest"
	"github.com/weir-limiter/weir/internal/text"
)

// maxMixBytes bounds a file of requests.
const maxMixBytes = 1 << 20

// loadtest loads a server and reports what it measured, also where it was stopped.
func (a *app) loadtest(cmd *cobra.Command, args []string, f *loadtestFlags) (*loadtestReport, error) {
	ctx, stop := untilHangup(cmd.Context())
	defer stop()
	outlivePipes() // nobody may be left to read the report, and yet leases are settled
	mix, texts, err := a.readRequests(ctx, cmd, args, f)
	if err != nil {
		return nil, err
	}
	if f.target.server == "" {
		f.target.server = a.env(serverEnv)
	}
	if f.target.server == "" {
		f.target.server, f.target.byDefault = defaultServer, true
	}
	if _, err := loadtest.New(nil, mix, &f.options); err != nil {
		return nil, optionErrors(cmd, err) // before anything else is looked at
	}
	server, err := a.dial(cmd, &f.target)
	if err != nil {
		return nil, err
	}
	defer server.close() //nolint:errcheck // It only drops connections.
	keep := max(f.options.Concurrency, manyIdle)
	f.target.transport.MaxIdleConns, f.target.transport.MaxIdleConnsPerHost = keep, keep
	runner, err := loadtest.New(server.service, mix, &f.options)
	if err != nil {
		return nil, optionErrors(cmd, err)
	}
	done := a.watchLoad(runner)
	measured, err := runner.Run(ctx)
	done()
	err = f.target.advise(serviceError(err))
	if measured == nil {
		return nil, err
	}
	return newLoadtestReport(measured, f.target.server, texts), err
}

// readRequests returns what the calls ask, and the same as text.
func (a *app) readRequests(
	ctx context.Context, cmd *cobra.Command, args []string, f *loadtestFlags,
) (mix []loadtest.Template, texts []string, err error) {
	given := f.requests
	if len(args) > 0 {
		given = []string{strings.Join(args, " ")}
	}
	var errs []error
	for _, request := range given {
		t, err := loadtest.ParseTemplate(request)
		if err != nil {
			if len(args) == 0 {
				err = fmt.Errorf("--request %q: %w", text.Shorten(request, 64), err)
			}
			errs = append(errs, misused(cmd, "%w", err))
			continue
		}
		mix = append(mix, *t)
	}
	if f.mix != "" {
		data, err := a.read(ctx, f.mix, maxMixBytes)
		if err != nil {
			return nil, nil, errors.Join(append(errs, err)...)
		}
		more, err := loadtest.ParseMix(inputName(f.mix), data)
		errs = append(errs, err)
		mix = append(mix, more...)
	}
	for i := range mix {
		texts = append(texts, mix[i].String())
	}
	return mix, texts, errors.Join(errs...)
}

// loadEvery is how often a run is shown on a terminal.
const loadEvery = 250 * time.Millisecond

// watchLoad shows on a terminal how far a run is until the function it returns is called.
func (a *app) watchLoad(r *loadtest.Runner) (done func()) {
	t := a.terminal()
	if t == nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(loadEvery)
		defer ticker.Stop()
		said := false
		for {
			select {
			case now := <-ticker.C:
				columns, _ := t.size()
				line := text.Cut(t.style.loadLine(r.Progress(now)), columns)
				said = true
				_, _ = t.Write([]byte("\r" + ansiNoWrap + line + ansiEndLine + ansiWrap)) // no loss
			case <-over:
				if said {
					_, _ = t.Write([]byte("\r" + ansiEndLine)) // no loss
				}
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// loadLine says how far a run is.
func (look style) loadLine(p loadtest.Progress) string {
	left := "settling"
	if p.Elapsed < p.Total {
		left = (p.Total - p.Elapsed + time.Second - 1).Truncate(time.Second).String() + " left"
	}
	share := min(int64(p.Elapsed)/max(int64(p.Total)/100, 1), 100)
	bar := look.bar(big.NewInt(int64(p.Elapsed)), big.NewInt(int64(p.Total)), 10)
	return fmt.Sprintf("%3d %%  %s  %s calls  %s/s  %s denied  %s failed  %s", share, bar, text.FormatInt(p.Calls),
		perSecond(p.Calls, min(p.Elapsed, p.Total)), text.FormatInt(p.Denied), text.FormatInt(p.Failed), left)
}
