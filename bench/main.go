// Command bench runs weir beside other rate limiters of its language on the same work, and prints
// the ratios. See docs/performance.md.
//
// A machine is never quiet. So each side lives in a process of its own, the sides run in turn in
// short slices, and a process stands still while it is not its turn; what counts is the ratio within
// a round, and the median of all rounds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		if err := serveChild(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == contestArgument {
		if err := serveContestant(os.Args[2], os.Stdin, os.Stdout); err != nil {
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
	s, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	p := &reporter{w: out, markdown: s.markdown}
	all := chosen(s)
	switch {
	case len(all) == 0:
		return fmt.Errorf("bench: -run %q: no item has such a name, or none has such a side", s.only)
	case s.list:
		for _, c := range all {
			if _, err := fmt.Fprintf(out, "%-24s %s\n", c.name, c.title); err != nil {
				return err
			}
		}
		return nil
	}
	if err := preamble(out, s); err != nil {
		return err
	}
	for _, c := range all {
		err := c.run(ctx, p)
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("bench: %s: %w", c.name, cause) // whatever the dying children said
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// choice is a comparison that is to be run.
type choice struct {
	name, title string
	run         func(ctx context.Context, p *reporter) error
}

// chosen are the comparisons that the flags name. Those on DynamoDB and TigerBeetle take long, and have
// to be named.
func chosen(s *settings) []choice {
	var out []choice
	for _, it := range items(s.procs) {
		if !s.only.MatchString(it.name) || !it.keep(s.sides) {
			continue
		}
		out = append(out, choice{it.name, it.title, func(ctx context.Context, p *reporter) error {
			r, err := runItem(ctx, &it, s)
			if err != nil {
				return err
			}
			return p.result(r)
		}})
	}
	for _, c := range contests() {
		if s.only.String() == "" && !s.list || !s.only.MatchString(c.name) || !c.keep(s.sides) {
			continue
		}
		out = append(out, choice{c.name, c.title, func(ctx context.Context, p *reporter) error {
			a, err := newLocalArena(ctx, &c, s)
			if err != nil {
				return err
			}
			r, err := runContest(ctx, a, &c, s)
			if err != nil {
				return err
			}
			return p.contestResult(r)
		}})
	}
	return append(out, chosenLedgers(s)...)
}

// chosenLedgers are the comparisons on TigerBeetle that the flags name. Without a server they only say so.
func chosenLedgers(s *settings) []choice {
	var out []choice
	for _, c := range ledgerContests() {
		if s.only.String() == "" && !s.list || !s.only.MatchString(c.name) || !c.matches(s.sides) {
			continue
		}
		out = append(out, choice{c.name, c.title, func(ctx context.Context, p *reporter) error {
			if len(ledgerAddresses()) == 0 {
				_, err := fmt.Fprintf(p.w, "%s was left out: %s names no TigerBeetle server.\n\n",
					c.name, ledgerVariable)
				return err
			}
			r, err := runLedger(ctx, &c, s)
			if err != nil {
				return err
			}
			return p.ledgerResult(r)
		}})
	}
	return out
}

// runItem starts the item's processes, has them take turns, and ends them.
func runItem(ctx context.Context, it *item, s *settings) (res *result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	processes, err := startWorlds(ctx, it, s.profile)
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.close())
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", it.name, err)
	}
	var worlds []runner
	for _, p := range processes {
		worlds = append(worlds, p)
	}
	if it.served {
		load, served, err := startLoad(ctx, it, processes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", it.name, err)
		}
		processes, worlds = append([]*process{load}, processes...), served
	}
	return alternate(ctx, it, worlds, s.rounds, s.slice)
}

// startWorlds sets up all worlds of an item at once. It returns the processes that are there even
// where others failed.
func startWorlds(ctx context.Context, it *item, profile string) ([]*process, error) {
	started, errs := make([]*process, len(it.worlds)), make([]error, len(it.worlds))
	var group sync.WaitGroup
	for i := range it.worlds {
		spec := it.worlds[i]
		if i == 0 {
			spec.Profile = profile
		}
		group.Go(func() { started[i], errs[i] = startProcess(ctx, &spec) })
	}
	group.Wait()
	started = slices.DeleteFunc(started, func(p *process) bool { return p == nil })
	return started, errors.Join(errs...)
}
