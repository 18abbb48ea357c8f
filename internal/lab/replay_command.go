// Package lab has the commands that try limits out: replay plays recorded traffic against them,
// loadtest measures a server, and demo shows a server at work. They are not needed to operate a
// server.
//
// This package parses the flags and prints. The packages below it compute:
//
// trace reads recorded traffic. replay plays it against limits, in virtual or real time. report
// formats the report of a replay as text or as a page, and chart draws its figures. live shows a
// replay while it runs. loadtest makes calls to a server and measures the answers.
//
// A replay passes through them in this order: trace reads the calls, replay makes a workload of
// them and runs it, watchers count each decision, and report formats the result.
package lab

import (
	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

const replayHelp = `Replay recorded traffic to see what limits admit and deny of it. Each call
reserves what it used, and settles with the same figures when it ends (see --estimate). A
denied call is not tried again (see --retry).

With --limits FILE the calls are replayed against that file, in virtual time and in this
process. With --server URL they are sent to a running server, in real time divided by --speed,
and the server's limits decide.

TRACE is a CSV file, or - for standard input, with a line for each call, in order of time:

  TIMESTAMP,ContextTokens,GeneratedTokens
  2023-11-16 18:17:03.9799600,4808,10

Other names of columns, and columns for who called which model and how long the call lasted,
are given with the flags that end in -column. Times are RFC 3339, or like the one above (UTC),
or numbers of --time-unit; they count to the millisecond. --sort accepts calls that are out of
order. Nothing is replayed if a line is wrong. A trace may have 10,000,000 calls and 1 GiB.

Tenants. The calls are spread over the entities tenant-1 to tenant-N at random. --seed makes
the same choice again: for each call, the next 64 bits x of PCG-DXSM (Go's math/rand/v2.PCG)
with the state (seed, 1) name the tenant 1 + floor(x * N / 2^64).

Latency. A call lasts BASE + PER_TOKEN for each token that it generated, less than an hour.
At one millisecond, calls end before others come back, and those before others begin; without
--latency a call ends in the millisecond in which it began.

Costs. The name of a limit decides what a call costs on it:

  rpm, rpd, requests, calls     1
  tpm, tpd, tokens              total
  itpm, input_tokens            input
  otpm, output_tokens           output
  usd_micros                    3*input+15*output   (an example of a price)

--cost NAME=EXPR sets the cost for another name, or another cost for one of these: EXPR is a
sum of whole numbers (for the call), input, output and total, also as multiples. A concurrency
limit needs no cost: a call takes one slot.

Estimates. A caller that reserves does not know yet how much its call will generate. --estimate
fixed:N reserves N tokens of output for each call. --estimate quantile:0.95 reserves as many as
were enough for 95 % of the earlier calls of the same entity and model. Each call settles with
what it used. The report says how many calls stayed within their estimate, and how many tokens
were reserved and not used.

Retry. With --retry a denied call is tried again after its retry-after, until it is admitted.
It gives up after 1,000 attempts, or if the next attempt would be later than --patience after
the first. A call lasts from when it is admitted.

Report. ADMITTED are calls that were charged to a limit, DENIED those that exceeded it, ONLY
IT those of them that exceeded no other; with --retry each attempt counts. AVAILABLE is what
could have been used from the first call to the end of the last: a bucket's capacity and
refill, a window's capacity as often as one begins, a budget's capacity in each period
touched, slots all the time. With more than 8 tenants, those with the same limit are reported
together. Below the table is a chart of what was admitted and denied over time, and of how
much of each limit was in use.

Comparison. --compare FILE2 replays the same calls, by the same callers with the same costs,
against a second limits file, and reports both: A is --limits, B is --compare, and CHANGE is B
less A. Limits with the same entity, resource and name are compared. The report also counts the
calls that both admitted in the end, only A, only B, or neither.

Page. --html FILE writes a page with all figures and charts that needs neither a network nor
a script. It is written whole, when the replay has ended, or not at all.

Suggestions. --suggest 1% looks for capacities that would have denied at most that share of
the calls when they came (0% for none). Each enforced limit gets one capacity where the file
declares it, for all whom it applies to, with two significant digits; a bucket keeps the ratio
of its refill to it. First each is sized ALONE, by replays in which nothing else denies: the
smallest that a search finds to deny at most the share of the calls that it judges. If they
deny more than that TOGETHER, each gets less of the share. What is printed was replayed as a
whole. A call that costs more than a limit holds counts as denied. --suggest-file FILE writes
the limits file with these numbers, without its comments.

Against a server. Each call is sent at its instant, whether or not earlier ones have ended. The
report says how many were sent more than 20 ms late; on a busy machine some are. The server's
limits are as they are: with --speed an hour of calls may come in half a minute, but buckets do
not refill faster. Calls that got no answer are counted as errors, never as denials, and after
a hundred errors in a row the replay gives up. Stopped with an interrupt, it settles the calls
in progress before it ends. The bearer token for it is in WEIR_TOKEN, or in a file named with
--token-file.`

// ReplayCommand makes `weir replay`.
func ReplayCommand(a *console.App) *cobra.Command {
	f := &replayFlags{costs: replay.Costs{}}
	cmd := &cobra.Command{
		Use:   "replay TRACE {--limits FILE | --server URL}",
		Short: "Replay recorded traffic against limits",
		Long:  replayHelp,
		Example: `  weir replay trace.csv --limits limits.yaml
  weir replay trace.csv --limits limits.yaml --entities 4 --seed 7 \
    --latency 400ms+15ms
  weir replay trace.csv --limits limits.yaml --cost hourly=1 \
    --cost usd=3*input+15*output
  weir replay trace.csv --limits limits.yaml --estimate quantile:0.95 --retry
  weir replay burst.csv --limits limits.yaml \
    --time-column Timestamp --model-column Model \
      --input-column 'Request tokens' --output-column 'Response tokens'
  weir replay trace.csv --limits limits.yaml --decisions decisions.jsonl \
    --output json
  weir replay trace.csv --limits limits.yaml --compare tighter.yaml \
    --html replay.html
  weir replay trace.csv --limits limits.yaml --suggest 1% \
    --suggest-file suggested.yaml
  weir replay trace.csv --server http://127.0.0.1:7117 --speed 120`,
		Args: console.Arguments(1, 1, "a trace, or - for standard input"),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.limits, "limits", "", "limits `FILE`, or - for standard input")
	f.target.AddServerFlags(cmd, "`URL` of a server to send the calls to instead")
	flags.Int64Var(&f.speed, "speed", 1, "with --server: `N` times as fast as recorded")
	flags.IntVar(&f.entities, "entities", 1, "spread the calls over `N` tenants")
	flags.Uint64Var(&f.seed, "seed", 0,
		"spread the calls as in an earlier run with seed `S` (default random)")
	flags.Var(&f.latency, "latency", "how long calls last, like 400ms+15ms")
	flags.Var(f.costs, "cost", "what a call costs on a limit by name (repeatable)")
	flags.Var(&f.estimate, "estimate",
		"what calls reserve for their output: truth, fixed:N tokens, or quantile:Q as learned")
	flags.BoolVar(&f.retry, "retry", false, "try a denied call again after its retry-after")
	flags.DurationVar(&f.patience, "patience", replay.DefaultPatience,
		"with --retry: how long after its first attempt a call gives up")
	flags.StringVar(&f.decisions, "decisions", "",
		"`FILE` to write every decision to, as lines of JSON")
	flags.StringVar(&f.html, "html", "", "`FILE` to write a page with charts to")
	flags.StringVar(&f.compare, "compare", "",
		"limits `FILE` to replay the same calls against as well, and compare")
	flags.Var(&f.suggest, "suggest",
		"look for capacities that deny at most a share of the calls, like 1%")
	flags.StringVar(&f.suggestFile, "suggest-file", "",
		"with --suggest: `FILE` to write the limits to with the capacities that were found")
	traceFlags(cmd, &f.read)
	f.output = console.OutputFlag(cmd)
	console.GroupFlags(cmd, "What to replay against", "limits", "compare", "server", "token-file",
		"ca-cert", "speed")
	console.GroupFlags(cmd, "The calls", "entities", "seed", "resource", "latency", "cost",
		"estimate", "retry",
		"patience")
	console.GroupFlags(cmd, "Results", "html", "decisions", "suggest", "suggest-file", "output")
	console.GroupFlags(cmd, "The form of the trace", "time-column", "input-column", "output-column",
		"entity-column",
		"model-column", "duration-column", "time-unit", "duration-unit", "sort")
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		return (&replayRun{replayFlags: f, app: a, trace: args[0]}).run(cmd)
	})
	return cmd
}
