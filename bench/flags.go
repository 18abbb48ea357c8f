package main

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxProcs bounds -cpu.
const maxProcs = 256

// settings are the flags.
type settings struct {
	only     *regexp.Regexp
	sides    *regexp.Regexp
	procs    []int
	rounds   int
	slice    time.Duration
	timeout  time.Duration
	markdown bool
	profile  string
	list     bool
	runs     int
	length   time.Duration
	warm     int
	heat     int
	python   string
}

// parse reads the flags.
func parse(args []string) (*settings, error) {
	s := &settings{}
	var only, sides, procs, output string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&only, "run", "", "run only the items whose `name` matches")
	f.StringVar(&sides, "side", "", "run only the sides whose `label` matches")
	f.StringVar(&procs, "cpu", "1,2", "GOMAXPROCS of the items of throughput, as a `list`")
	f.IntVar(&s.rounds, "rounds", 20, "how many rounds")
	f.DurationVar(&s.slice, "slice", 100*time.Millisecond, "how long each side runs in a round")
	f.DurationVar(&s.timeout, "timeout", time.Hour, "give up after")
	f.StringVar(&output, "output", "table", "table or markdown")
	f.StringVar(&s.profile, "cpuprofile", "",
		"write a CPU profile of the first process of the last item to `file`")
	f.BoolVar(&s.list, "list", false, "name the items and do nothing")
	f.IntVar(&s.runs, "runs", 5, "how many runs of a dynamodb or tigerbeetle item")
	f.DurationVar(&s.length, "length", 5*time.Second,
		"how long each side of a dynamodb or tigerbeetle item is measured")
	f.IntVar(&s.warm, "warm", 5000, "how many calls of each side of a dynamodb item go before")
	f.IntVar(&s.heat, "heat", 20_000, "how many writes a DynamoDB Local has made before any side comes")
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
	switch {
	case output != "table" && output != "markdown":
		return nil, fmt.Errorf("bench: -output %q: must be table or markdown", output)
	case s.rounds < 1:
		return nil, fmt.Errorf("bench: -rounds %d: must be above zero", s.rounds)
	case s.slice < time.Millisecond:
		return nil, fmt.Errorf("bench: -slice %s: must be at least a millisecond", s.slice)
	case s.runs < 1:
		return nil, fmt.Errorf("bench: -runs %d: must be above zero", s.runs)
	case s.length < time.Millisecond:
		return nil, fmt.Errorf("bench: -length %s: must be at least a millisecond", s.length)
	case s.warm < contestCallers:
		return nil, fmt.Errorf("bench: -warm %d: must be at least one for each of %d callers",
			s.warm, contestCallers)
	case s.heat < 0:
		return nil, fmt.Errorf("bench: -heat %d: must not be below zero", s.heat)
	case f.NArg() > 0:
		return nil, fmt.Errorf("bench: %q: takes no arguments", f.Arg(0))
	}
	s.markdown = output == "markdown"
	return s, nil
}
