package lab

import (
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
	// suggest applies if suggests is set.
	suggest     replay.Fraction
	suggests    bool
	suggestFile string
	output      *console.Choice
}

// traceFlags adds the flags that say how a trace is written.
func traceFlags(cmd *cobra.Command, o *trace.Options) {
	o.TimeUnit, o.DurationUnit = trace.Seconds, trace.Milliseconds
	flags := cmd.Flags()
	for _, f := range []struct {
		into        *string
		name, value string
		usage       string
	}{
		{&o.Time, "time-column", "TIMESTAMP", "column `NAME` with the time of a call"},
		{&o.Input, "input-column", "ContextTokens",
			"column `NAME` with the number of input tokens"},
		{&o.Output, "output-column", "GeneratedTokens",
			"column `NAME` with the number of output tokens"},
		{&o.Entity, "entity-column", "",
			"column `NAME` with the calling entity, instead of --entities"},
		{&o.Model, "model-column", "", "column `NAME` with the resource, instead of --resource"},
		{
			&o.Duration, "duration-column", "",
			"column `NAME` with the duration of a call, instead of --latency",
		},
		{&o.Resource, "resource", "llm", "`NAME` of the resource that the calls use"},
	} {
		flags.StringVar(f.into, f.name, f.value, f.usage)
	}
	flags.Var(&o.TimeUnit, "time-unit", "unit of times that are numbers")
	flags.Var(&o.DurationUnit, "duration-unit", "unit of durations that are numbers")
	flags.BoolVar(&o.Sort, "sort", false, "sort the calls by time")
}

// mistake is a rule for the flags; made reports whether they break it.
type mistake struct {
	made   bool
	reason string
}

// check returns the first mistake in the flags.
func (f *replayFlags) check(cmd *cobra.Command, tracePath string) error {
	if err := console.RejectBlankFlags(cmd); err != nil {
		return err
	}
	f.suggests = cmd.Flags().Changed("suggest")
	rules := slices.Concat([]mistake{{tracePath == "", "TRACE must not be empty"}},
		f.whereRules(cmd), f.callRules(cmd), f.suggestRules(), f.fileRules(tracePath))
	for _, m := range rules {
		if m.made {
			return console.UsageError(cmd, "%s", m.reason)
		}
	}
	return nil
}

// whereRules are about the limits that the calls are replayed against.
func (f *replayFlags) whereRules(cmd *cobra.Command) []mistake {
	given := cmd.Flags().Changed
	inFile, onServer := f.limits != "", f.limits == ""
	return []mistake{
		{onServer && f.target.Server == "", "give the limits to replay against with --limits FILE, " +
			"or a server that has some with --server URL"},
		{inFile && f.target.Server != "",
			"--limits and --server cannot be combined: a server has its own limits"},
		{onServer && f.decisions != "",
			"--decisions needs --limits: a server's decisions depend on its clock"},
		{onServer && f.retry,
			"--retry needs --limits: a server computes the retry-after in real time, " +
				"which --speed does not divide"},
		{onServer && f.compare != "", "--compare needs --limits: a server has one set of limits"},
		{f.compare != "" && f.decisions != "", "--compare and --decisions cannot be combined: " +
			"replay against each limits file to have its decisions"},
		{inFile && given("speed"),
			"--speed needs --server: a replay in virtual time runs as fast as it can"},
		{inFile && (given("token-file") || given("ca-cert")),
			"--token-file and --ca-cert need --server"},
		{f.speed < 1 || f.speed > replay.MaxSpeed,
			fmt.Sprintf("--speed %d: must be between 1 and %s", f.speed, text.FormatInt(replay.MaxSpeed))},
	}
}

// callRules are about the callers, the costs and the behaviour of calls.
func (f *replayFlags) callRules(cmd *cobra.Command) []mistake {
	given := cmd.Flags().Changed
	rules := []mistake{
		{f.read.Entity != "" && (given("entities") || given("seed")),
			"--entities and --seed spread the calls " +
				"over tenants: they cannot be combined with --entity-column, which names the entity of each call"},
		{f.read.Model != "" && given("resource"),
			"--resource cannot be combined with --model-column, which names the resource of each call"},
		{f.read.Duration != "" && given("latency"),
			"--latency cannot be combined with --duration-column, which has the duration of each call"},
		{f.read.Duration == "" && given("duration-unit"),
			"--duration-unit needs --duration-column"},
		{f.entities < 1 || f.entities > trace.MaxEntities,
			fmt.Sprintf("--entities %d: must be between 1 and %s",
				f.entities, text.FormatInt(trace.MaxEntities))},
	}
	if err := trace.CheckResource(f.read.Resource); err != nil {
		rules = append(rules, mistake{true, fmt.Sprintf("--resource %q: %v", f.read.Resource, err)})
	}
	flags := map[string]string{} // by the column that they name
	for _, c := range [][2]string{
		{"--time-column", f.read.Time}, {"--input-column", f.read.Input},
		{"--output-column", f.read.Output}, {"--entity-column", f.read.Entity},
		{"--model-column", f.read.Model}, {"--duration-column", f.read.Duration},
	} {
		flag, column := c[0], c[1]
		other, twice := flags[column]
		rules = append(rules, mistake{twice && column != "",
			fmt.Sprintf("%s and %s both name the column %q", other, flag, column)})
		flags[column] = flag
	}
	return append(rules,
		mistake{!f.retry && given("patience"), "--patience needs --retry"},
		mistake{f.retry && (f.patience <= 0 || f.patience > replay.MaxPatience),
			fmt.Sprintf("--patience %v: must be more than 0 and at most %v", f.patience, replay.MaxPatience)})
}

// suggestRules are about suggestions.
func (f *replayFlags) suggestRules() []mistake {
	return []mistake{
		{f.suggestFile != "" && !f.suggests, report.SuggestFileFlag + " needs --suggest"},
		{f.suggestFile == console.StandardInput,
			report.SuggestFileFlag + " -: name a file for the limits, because the report goes to standard output"},
		{f.suggests && f.limits == "",
			"--suggest needs --limits: other limits cannot be tried on a server"},
		{f.suggests && f.compare != "", "--suggest and --compare cannot be combined: " +
			"write the suggested limits to a file, and compare with that"},
	}
}

// fileRules make sure that standard input is read once, and that no file is written that is read or
// written under another flag.
func (f *replayFlags) fileRules(tracePath string) []mistake {
	const stdin = console.StandardInput
	rules := []mistake{
		{f.limits == stdin && tracePath == stdin,
			"trace and limits cannot both come from standard input"},
		{f.compare == stdin && (tracePath == stdin || f.limits == stdin),
			"only one of trace, --limits and --compare can come from standard input"},
		{f.decisions == stdin,
			"--decisions -: name a file for the decisions, because the report goes to standard output"},
		{f.html == stdin, "--html -: name a file for the page, because the report goes to standard output"},
	}
	written := [][2]string{{"--decisions", f.decisions}, {"--html", f.html}, {report.SuggestFileFlag, f.suggestFile}}
	for i, w := range written {
		flag, name := w[0], w[1]
		for _, other := range []string{tracePath, f.limits, f.compare} {
			rules = append(rules, mistake{sameFile(name, other),
				fmt.Sprintf("%s %s: would overwrite a file that the replay reads", flag, name)})
		}
		for _, other := range written[:i] {
			rules = append(rules, mistake{sameFile(name, other[1]),
				fmt.Sprintf("%s and %s both name the file %s", other[0], flag, name)})
		}
	}
	return rules
}

// sameFile reports whether two names mean the same file, even through links.
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

// commandLine returns the command that makes the same replay again, including the seed.
func (f *replayFlags) commandLine(cmd *cobra.Command, trace string) string {
	words := []string{cmd.CommandPath(), shellWord(trace)}
	for _, flag := range console.Collect(cmd.Flags().Visit) {
		value := "=" + shellWord(flag.Value.String())
		switch flag.Name {
		case "seed", "output":
			continue // the seed is added below, and the output format does not change the page
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

// shellWord quotes a word if a shell would interpret it.
func shellWord(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=+,@%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
