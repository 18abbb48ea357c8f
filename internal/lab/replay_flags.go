package lab

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/report"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/text"
)

// replayFlags are the flags of `weir replay`.
type replayFlags struct {
	limits    string
	target    connect.Target
	speed     int64
	entities  int
	seed      uint64
	read      trace.Options
	latency   replay.Latency
	costs     replay.Costs
	estimate  replay.Estimate
	retry     bool
	patience  time.Duration
	decisions string
	html      string
	compare   string
	// suggest is meant where suggests is set.
	suggest     replay.Fraction
	suggests    bool
	suggestFile string
	output      *console.Choice
}

// traceFlags gives a command the flags for how a trace is written.
func traceFlags(cmd *cobra.Command, o *trace.Options) {
	o.TimeUnit, o.DurationUnit = trace.Seconds, trace.Milliseconds
	flags := cmd.Flags()
	for _, f := range []struct {
		into        *string
		name, value string
		usage       string
	}{
		{&o.Time, "time-column", "TIMESTAMP", "the trace's column `NAME` for when a call came"},
		{&o.Input, "input-column", "ContextTokens", "the column `NAME` for the tokens that went in"},
		{&o.Output, "output-column", "GeneratedTokens", "the column `NAME` for the tokens that came out"},
		{&o.Entity, "entity-column", "", "the column `NAME` for who called, instead of --entities"},
		{&o.Model, "model-column", "", "the column `NAME` for the resource, instead of --resource"},
		{
			&o.Duration, "duration-column", "",
			"the column `NAME` for how long a call lasted, instead of --latency",
		},
		{&o.Resource, "resource", "llm", "`NAME` of the resource that the calls use"},
	} {
		flags.StringVar(f.into, f.name, f.value, f.usage)
	}
	flags.Var(&o.TimeUnit, "time-unit", "what times count that are numbers")
	flags.Var(&o.DurationUnit, "duration-unit", "what durations count that are numbers")
	flags.BoolVar(&o.Sort, "sort", false, "sort the calls by time")
}

// check finds what is wrong with the flags.
func (f *replayFlags) check(cmd *cobra.Command, trace string) error {
	if err := console.RejectBlankFlags(cmd); err != nil {
		return err
	}
	if trace == "" {
		return console.UsageError(cmd, "TRACE must not be empty")
	}
	for _, check := range []func(*cobra.Command) error{f.checkWhere, f.checkWho, f.checkHow, f.checkSuggest} {
		if err := check(cmd); err != nil {
			return console.UsageError(cmd, "%w", err)
		}
	}
	if err := f.checkFiles(trace); err != nil {
		return console.UsageError(cmd, "%w", err)
	}
	return nil
}

// checkWhere looks at what the calls are replayed against.
func (f *replayFlags) checkWhere(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case f.limits == "" && f.target.Server == "":
		return errors.New("give the limits to replay against with --limits FILE, " +
			"or a server that has some with --server URL")
	case f.limits != "" && f.target.Server != "":
		return errors.New("--limits and --server do not go together: a server has its own limits")
	case f.limits == "" && f.decisions != "":
		return errors.New("--decisions goes with --limits: a server's decisions depend on its clock")
	case f.limits == "" && f.retry:
		return errors.New("--retry goes with --limits: a server tells when to come back in its own time, " +
			"which --speed does not divide")
	case f.limits == "" && f.compare != "":
		return errors.New("--compare goes with --limits: a server has one set of limits")
	case f.compare != "" && f.decisions != "":
		return errors.New("--compare and --decisions do not go together: " +
			"replay against each limits file to have its decisions")
	case f.limits != "" && given("speed"):
		return errors.New("--speed goes with --server: virtual time is as fast as can be")
	case f.limits != "" && (given("token-file") || given("ca-cert")):
		return errors.New("--token-file and --ca-cert go with --server")
	case f.speed < 1 || f.speed > replay.MaxSpeed:
		return fmt.Errorf("--speed %d: must be between 1 and %s", f.speed, text.FormatInt(replay.MaxSpeed))
	}
	return nil
}

// checkWho looks at who calls what.
func (f *replayFlags) checkWho(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case f.read.Entity != "" && (given("entities") || given("seed")):
		return errors.New("--entities and --seed spread the calls over tenants: " +
			"they do not go with --entity-column, which says who called")
	case f.read.Model != "" && given("resource"):
		return errors.New("--resource does not go with --model-column, which says what was called")
	case f.read.Duration != "" && given("latency"):
		return errors.New("--latency does not go with --duration-column, which says how long a call lasted")
	case f.read.Duration == "" && given("duration-unit"):
		return errors.New("--duration-unit goes with --duration-column")
	case f.entities < 1 || f.entities > trace.MaxEntities:
		return fmt.Errorf("--entities %d: must be between 1 and %s", f.entities, text.FormatInt(trace.MaxEntities))
	}
	if err := trace.CheckResource(f.read.Resource); err != nil {
		return fmt.Errorf("--resource %q: %w", f.read.Resource, err)
	}
	return f.checkColumns()
}

// checkColumns makes sure that no column has two meanings.
func (f *replayFlags) checkColumns() error {
	flags := map[string]string{}
	for _, c := range [][2]string{
		{"--time-column", f.read.Time}, {"--input-column", f.read.Input},
		{"--output-column", f.read.Output}, {"--entity-column", f.read.Entity},
		{"--model-column", f.read.Model}, {"--duration-column", f.read.Duration},
	} {
		flag, column := c[0], c[1]
		if other, twice := flags[column]; twice && column != "" {
			return fmt.Errorf("%s and %s both name the column %q", other, flag, column)
		}
		flags[column] = flag
	}
	return nil
}

// checkHow looks at how calls behave.
func (f *replayFlags) checkHow(cmd *cobra.Command) error {
	switch {
	case !f.retry && cmd.Flags().Changed("patience"):
		return errors.New("--patience goes with --retry")
	case f.retry && (f.patience <= 0 || f.patience > replay.MaxPatience):
		return fmt.Errorf("--patience %v: must be more than 0 and at most %v", f.patience, replay.MaxPatience)
	}
	return nil
}

// checkFiles makes sure that standard input is read once, and that nothing is written over what is
// read or over what else is written.
func (f *replayFlags) checkFiles(trace string) error {
	switch {
	case f.limits == console.StandardInput && trace == console.StandardInput:
		return errors.New("trace and limits cannot both come from standard input")
	case f.compare == console.StandardInput && (trace == console.StandardInput || f.limits == console.StandardInput):
		return errors.New("only one of trace, --limits and --compare can come from standard input")
	case f.decisions == console.StandardInput:
		return errors.New("--decisions -: the decisions must go to a file, the report goes to standard output")
	case f.html == console.StandardInput:
		return errors.New("--html -: the page must be a file, the report goes to standard output")
	}
	read := []string{trace, f.limits, f.compare}
	written := [][2]string{{"--decisions", f.decisions}, {"--html", f.html}, {report.SuggestFileFlag, f.suggestFile}}
	for i, w := range written {
		flag, name := w[0], w[1]
		for _, other := range read {
			if sameFile(name, other) {
				return fmt.Errorf("%s %s: would replace what is read", flag, name)
			}
		}
		for _, other := range written[:i] {
			if sameFile(name, other[1]) {
				return fmt.Errorf("%s and %s both name the file %s", other[0], flag, name)
			}
		}
	}
	return nil
}

// sameFile reports whether two names mean one file, also by way of links.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// checkSuggest looks at what goes with suggestions.
func (f *replayFlags) checkSuggest(cmd *cobra.Command) error {
	f.suggests = cmd.Flags().Changed("suggest")
	switch {
	case f.suggestFile != "" && !f.suggests:
		return errors.New(report.SuggestFileFlag + " goes with --suggest")
	case f.suggestFile == console.StandardInput:
		return errors.New(report.SuggestFileFlag + " -: the limits must be a file, " +
			"the report goes to standard output")
	case f.suggests && f.limits == "":
		return errors.New("--suggest goes with --limits: a server's limits are not tried out")
	case f.suggests && f.compare != "":
		return errors.New("--suggest and --compare do not go together: " +
			"write the suggested limits to a file, and compare with that")
	}
	return nil
}

// commandLine is the command that makes the same replay again, with the seed that was drawn.
func (f *replayFlags) commandLine(cmd *cobra.Command, trace string) string {
	words := []string{cmd.CommandPath(), shellWord(trace)}
	for _, flag := range console.Collect(cmd.Flags().Visit) {
		value := "=" + shellWord(flag.Value.String())
		switch flag.Name {
		case "seed", "output":
			continue // the one is added below, the other is not about the page
		case "cost":
			for _, name := range slices.Sorted(maps.Keys(f.costs)) {
				cost := f.costs[name]
				words = append(words, "--cost="+shellWord(name+"="+cost.String()))
			}
			continue
		}
		if flag.Value.Type() == "bool" && flag.Value.String() == "true" {
			value = ""
		}
		words = append(words, "--"+flag.Name+value)
	}
	if f.read.Entity == "" {
		words = append(words, "--seed="+strconv.FormatUint(f.seed, 10))
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word where a shell would take it for something else.
func shellWord(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=+,@%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
