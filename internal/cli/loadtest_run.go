package cli

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
	"github.com/weir-limiter/weir/internal/text"
)

// maxMixBytes bounds a file of requests.
const maxMixBytes = 1 << 20

// runLoadtest loads a server and reports what it measured, also where it was stopped.
func runLoadtest(a *console.App, cmd *cobra.Command, args []string, f *loadtestFlags) (*loadtestReport, error) {
	ctx, stop := console.WithHangup(cmd.Context())
	defer stop()
	console.IgnoreBrokenPipes() // nobody may be left to read the report, and yet leases are settled
	mix, texts, err := readRequests(ctx, a, cmd, args, f)
	if err != nil {
		return nil, err
	}
	if f.target.Server == "" {
		f.target.Server = a.Env(connect.ServerEnv)
	}
	if f.target.Server == "" {
		f.target.Server, f.target.Defaulted = connect.DefaultServer, true
	}
	if _, err := loadtest.New(nil, mix, &f.options); err != nil {
		return nil, optionErrors(cmd, err) // before anything else is looked at
	}
	server, err := connect.Dial(a, cmd, &f.target)
	if err != nil {
		return nil, err
	}
	defer server.Close() //nolint:errcheck // It only drops connections.
	keep := max(f.options.Concurrency, connect.ManyIdle)
	f.target.Transport.MaxIdleConns, f.target.Transport.MaxIdleConnsPerHost = keep, keep
	runner, err := loadtest.New(server.Service, mix, &f.options)
	if err != nil {
		return nil, optionErrors(cmd, err)
	}
	done := watchLoad(a, runner)
	measured, err := runner.Run(ctx)
	done()
	err = f.target.Hint(connect.ServiceError(err))
	if measured == nil {
		return nil, err
	}
	return newLoadtestReport(measured, f.target.Server, texts), err
}

// readRequests returns what the calls ask, and the same as text.
func readRequests(
	ctx context.Context, a *console.App, cmd *cobra.Command, args []string, f *loadtestFlags,
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
			errs = append(errs, console.UsageError(cmd, "%w", err))
			continue
		}
		mix = append(mix, *t)
	}
	if f.mix != "" {
		data, err := a.Read(ctx, f.mix, maxMixBytes)
		if err != nil {
			return nil, nil, errors.Join(append(errs, err)...)
		}
		more, err := loadtest.ParseMix(console.InputName(f.mix), data)
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
func watchLoad(a *console.App, r *loadtest.Runner) (done func()) {
	t := a.Terminal()
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
				columns, _ := t.Size()
				line := text.Cut(loadLine(t.Style, r.Progress(now)), columns)
				said = true
				_, _ = t.Write([]byte("\r" + console.AnsiNoWrap + line + console.AnsiEndLine + console.AnsiWrap)) // no loss
			case <-over:
				if said {
					_, _ = t.Write([]byte("\r" + console.AnsiEndLine)) // no loss
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
func loadLine(look console.Style, p loadtest.Progress) string {
	left := "settling"
	if p.Elapsed < p.Total {
		left = (p.Total - p.Elapsed + time.Second - 1).Truncate(time.Second).String() + " left"
	}
	share := min(int64(p.Elapsed)/max(int64(p.Total)/100, 1), 100)
	bar := look.Bar(big.NewInt(int64(p.Elapsed)), big.NewInt(int64(p.Total)), 10)
	return fmt.Sprintf("%3d %%  %s  %s calls  %s/s  %s denied  %s failed  %s", share, bar, text.FormatInt(p.Calls),
		perSecond(p.Calls, min(p.Elapsed, p.Total)), text.FormatInt(p.Denied), text.FormatInt(p.Failed), left)
}
