// Command bench runs weir and other rate limiters on the same work, and prints the ratios. See
// docs/performance.md.
//
// A machine is never quiet, so the measurements are arranged to be disturbed equally. Each
// contestant is one or more processes of its own (worker.go), which obey orders in JSON on standard
// input (protocol.go): the first opens a workload, each later one runs a work of it and returns
// counts, time and memory (work.go). The contestants take turns, in short slices or in long rounds,
// and the processes of the others are stopped meanwhile (runner.go). A ratio compares two sides
// within one round, and the report gives its median over all rounds (report.go). The table of
// comparisons is in comparisons.go; the contestants are in limiter.go, rivals.go, dynamodb.go,
// tigerbeetle.go, http.go and parts.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == workerArgument {
		if err := serveOrders(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parseFlags(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	chosen := choose(s)
	if len(chosen) == 0 {
		return fmt.Errorf("bench: -run %q -side %q: no comparison has such a name and such a side",
			s.only, s.sides)
	}
	if s.list {
		for _, c := range chosen {
			if _, err := fmt.Fprintf(out, "%-24s %s\n", c.name, c.title); err != nil {
				return err
			}
		}
		return nil
	}
	if err := printPreamble(out); err != nil {
		return err
	}
	for _, c := range chosen {
		r, err := compare(ctx, c, s)
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("bench: %s: %w", c.name, cause) // rather than the errors of killed workers
		}
		switch {
		case errors.Is(err, errLeftOut):
			_, err = fmt.Fprintf(out, "%s: %s.\n\n", c.name, err)
		case err != nil:
			return fmt.Errorf("bench: %s: %w", c.name, err)
		default:
			err = r.writeTo(out, s.markdown)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// choose returns the comparisons that the flags name, each with the sides that they name.
func choose(s *settings) []*comparison {
	var out []*comparison
	for _, c := range comparisons(s.procs) {
		unnamed := s.only.String() == "" && !s.list
		if s.only.MatchString(c.name) && (c.store.open == nil || !unnamed) && c.keep(s.sides) {
			out = append(out, c)
		}
	}
	return out
}

// settings are the values of the flags.
type settings struct {
	only, sides *regexp.Regexp
	procs       []int
	rounds      int
	slice       time.Duration
	runs        int
	length      time.Duration
	warm, heat  int
	timeout     time.Duration
	markdown    bool
	list        bool
	profile     string
	python      string
}

// maxProcs bounds -cpu.
const maxProcs = 256

func parseFlags(args []string) (*settings, error) {
	s := &settings{}
	var only, sides, procs, output string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&only, "run", "", "run only the comparisons whose `name` matches")
	f.StringVar(&sides, "side", "", "run only the sides whose `label` matches")
	f.StringVar(&procs, "cpu", "1,2", "GOMAXPROCS of the comparisons of throughput, as a `list`")
	f.IntVar(&s.rounds, "rounds", 20, "how many rounds")
	f.DurationVar(&s.slice, "slice", 100*time.Millisecond, "how long each side runs in a round")
	f.DurationVar(&s.timeout, "timeout", time.Hour, "give up after")
	f.StringVar(&output, "output", "table", "table or markdown")
	f.StringVar(&s.profile, "cpuprofile", "",
		"write a CPU profile of the first contestant of the last comparison to `file`")
	f.BoolVar(&s.list, "list", false, "name the comparisons and do nothing")
	f.IntVar(&s.runs, "runs", 5, "how many rounds of a dynamodb or tigerbeetle comparison")
	f.DurationVar(&s.length, "length", 5*time.Second,
		"how long each side of a dynamodb or tigerbeetle comparison runs in a round")
	f.IntVar(&s.warm, "warm", 5000, "how many calls warm up each contestant of a dynamodb comparison")
	f.IntVar(&s.heat, "heat", 20_000, "how many writes warm up a DynamoDB Local")
	f.StringVar(&s.python, "python", "",
		"the `path` of a Python that has zae-limiter, instead of one made for it")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if s.only, err = regexp.Compile(only); err != nil {
		return nil, fmt.Errorf("bench: -run %q: %w", only, err)
	}
	if s.sides, err = regexp.Compile(sides); err != nil {
		return nil, fmt.Errorf("bench: -side %q: %w", sides, err)
	}
	for text := range strings.SplitSeq(procs, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxProcs {
			return nil, fmt.Errorf("bench: -cpu %q: must be numbers from 1 to %d", procs, maxProcs)
		}
		s.procs = append(s.procs, n)
	}
	s.markdown = output == "markdown"
	if output != "table" && output != "markdown" {
		return nil, fmt.Errorf("bench: -output %q: must be table or markdown", output)
	}
	for _, bound := range []struct {
		name       string
		got, least int
	}{
		{"rounds", s.rounds, 1}, {"runs", s.runs, 1}, {"warm", s.warm, storeCallers}, {"heat", s.heat, 0},
	} {
		if bound.got < bound.least {
			return nil, fmt.Errorf("bench: -%s %d: must be at least %d", bound.name, bound.got, bound.least)
		}
	}
	if min(s.slice, s.length) < time.Millisecond {
		return nil, fmt.Errorf("bench: -slice %s -length %s: must be at least a millisecond",
			s.slice, s.length)
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("bench: %q: takes no arguments", f.Arg(0))
	}
	return s, nil
}

// printPreamble writes the machine and the versions, so that results can be attributed later.
func printPreamble(w io.Writer) error {
	var modules []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			// The SDK's client of DynamoDB depends on many small modules.
			const sdk, client = "github.com/aws/aws-sdk-go-v2/", "github.com/aws/aws-sdk-go-v2/service/dynamodb"
			part := strings.HasPrefix(m.Path, sdk) && m.Path != client
			if m.Replace == nil && m.Path != "" && !part {
				modules = append(modules, m.Path+" "+m.Version)
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s %s/%s, %s. Built with %s.\n\n", runtime.Version(), runtime.GOOS,
		runtime.GOARCH, counted(runtime.NumCPU(), "processor"), strings.Join(modules, ", "))
	return err
}
