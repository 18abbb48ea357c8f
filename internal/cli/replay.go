package cli

import (
	"errors"
	"math/rand/v2"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
)

const replayHelp = `Replay recorded traffic: what do limits admit and deny of it? Each call reserves
what it used, and settles with the same figures when it ends. Denied calls do not come back.

With --limits FILE the calls are replayed against that file, in virtual time and in this
process. With --server URL they are sent to a server that runs, in real time divided by
--speed, and judged by the limits that it has.

TRACE is a CSV file, or - for standard input, with a line for each call, in order of time:

  TIMESTAMP,ContextTokens,GeneratedTokens
  2023-11-16 18:17:03.9799600,4808,10

Times are UTC and count to the millisecond. Nothing is replayed if a line is wrong.

Tenants. The calls are spread over the entities tenant-1 to tenant-N at random. --seed makes
the same choice again: for each call, the next 64 bits x of PCG-DXSM (Go's math/rand/v2.PCG)
with the state (seed, 1) name the tenant 1 + floor(x * N / 2^64).

Latency. A call lasts BASE + PER_TOKEN for each token that it generated, less than an hour.
At one millisecond, calls end before others begin; without --latency a call ends in the
millisecond in which it began.

Costs. What a call costs on a limit is found by the limit's name:

  rpm, rpd, requests, calls     1
  tpm, tpd, tokens              total
  itpm, input_tokens            input
  otpm, output_tokens           output
  usd_micros                    3*input+15*output   (an example of a price)

--cost NAME=EXPR says it for other names, or otherwise: EXPR is a sum of whole numbers (for
the call), input, output and total, also as multiples. A concurrency limit needs no cost: a
call takes one slot.

Report. ADMITTED are calls that were charged to a limit, DENIED those that exceeded it, ONLY
IT those of them that exceeded no other. AVAILABLE is what could have been used from the
first call to the end of the last: a bucket's capacity and refill, a window's capacity as
often as one begins, a budget's capacity in each period touched, slots all the time. With
more than 8 tenants, those with the same limit are reported together.

Against a server. Each call is sent at its instant, whatever became of the others; how many
left more than 20 ms late is reported, and a busy machine has some. The server's limits are
as they are: --speed makes an hour of calls come in half a minute, but no bucket refills
faster. Calls that got no answer are counted as errors, never as denials, and after a
hundred errors in a row the replay gives up. Stopped with an interrupt, it settles what is
under way before it ends. The bearer token for it stands in WEIR_TOKEN, or in a file
named with --token-file.`

// replayFlags are the flags of `weir replay`.
type replayFlags struct {
	limits    string
	target    target
	speed     int64
	entities  int
	seed      uint64
	resource  string
	latency   latency
	costs     costFlag
	decisions string
	output    *format
}

func (a *app) replayCommand() *cobra.Command {
	f := &replayFlags{costs: costFlag{}}
	cmd := &cobra.Command{
		Use:   "replay TRACE {--limits FILE | --server URL}",
		Short: "Replay recorded traffic against limits",
		Long:  replayHelp,
		Example: `  weir replay trace.csv --limits limits.yaml
  weir replay trace.csv --limits limits.yaml --entities 4 --seed 7 --latency 400ms+15ms
  weir replay trace.csv --limits limits.yaml --cost hourly=1 --cost usd=3*input+15*output
  weir replay trace.csv --limits limits.yaml --decisions decisions.jsonl --output json
  weir replay trace.csv --server http://127.0.0.1:7117 --speed 120`,
		Args: arguments(1, 1, "a trace, or - for standard input"),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.limits, "limits", "", "limits `FILE`, or - for standard input")
	flags.StringVar(&f.target.server, "server", "", "`URL` of a server to send the calls to instead")
	flags.StringVar(&f.target.tokenFile, "token-file", "",
		"`FILE` with the bearer token for the server")
	flags.StringVar(&f.target.caCert, "ca-cert", "",
		"`FILE` of certificates (PEM) to trust instead of the system's")
	flags.Int64Var(&f.speed, "speed", 1, "with --server: `N` times as fast as recorded")
	flags.IntVar(&f.entities, "entities", 1, "spread the calls over `N` tenants")
	flags.Uint64Var(&f.seed, "seed", 0, "the number `S` decides who makes which call (default random)")
	flags.StringVar(&f.resource, "resource", "llm", "`NAME` of the resource that the calls use")
	flags.Var(&f.latency, "latency", "how long calls last, like 400ms+15ms")
	flags.Var(f.costs, "cost", "what a call costs on a limit by name (repeatable)")
	flags.StringVar(&f.decisions, "decisions", "",
		"`FILE` to write every decision to, as lines of JSON")
	f.output = outputFlag(cmd)
	cmd.RunE = run(func(cmd *cobra.Command, args []string) error {
		if err := f.check(cmd, args[0]); err != nil {
			return err
		}
		if !cmd.Flags().Changed("seed") {
			f.seed = uint64(rand.Uint32()) // short enough to be typed again
		}
		var report *replayReport
		var err error
		if f.limits != "" {
			report, err = a.replay(cmd.Context(), args[0], f)
		} else {
			report, err = a.replayLive(cmd, args[0], f)
		}
		if _, unfit := errors.AsType[unfitError](err); unfit {
			return misused(cmd, "%w", err)
		}
		if report != nil { // a replay that was stopped has one too
			err = errors.Join(err, a.print(*f.output, report, report.table))
		}
		return err
	})
	return cmd
}

// maxSpeed bounds how much faster than recorded a trace is replayed.
const maxSpeed = 1_000_000

// check finds what is wrong with the flags.
func (f *replayFlags) check(cmd *cobra.Command, trace string) error {
	given := cmd.Flags().Changed
	if err := refuseBlankFlags(cmd); err != nil {
		return err
	}
	switch {
	case trace == "":
		return misused(cmd, "TRACE must not be empty")
	case f.limits == "" && f.target.server == "":
		return misused(cmd, "give the limits to replay against with --limits FILE, "+
			"or a server that has some with --server URL")
	case f.limits != "" && f.target.server != "":
		return misused(cmd, "--limits and --server do not go together: a server has its own limits")
	case f.limits == "" && f.decisions != "":
		return misused(cmd, "--decisions goes with --limits: a server's decisions depend on its clock")
	case f.limits != "" && given("speed"):
		return misused(cmd, "--speed goes with --server: virtual time is as fast as can be")
	case f.limits != "" && (given("token-file") || given("ca-cert")):
		return misused(cmd, "--token-file and --ca-cert go with --server")
	case f.speed < 1 || f.speed > maxSpeed:
		return misused(cmd, "--speed %d: must be between 1 and %s", f.speed, thousands(maxSpeed))
	case f.limits == standardInput && trace == standardInput:
		return misused(cmd, "trace and limits cannot both come from standard input")
	case f.decisions != "" && (f.decisions == trace || f.decisions == f.limits):
		return misused(cmd, "--decisions %s: would replace what is read", f.decisions)
	case f.entities < 1 || f.entities > maxTenants:
		return misused(cmd, "--entities %d: must be between 1 and %s", f.entities, thousands(maxTenants))
	}
	if err := checkResource(f.resource); err != nil {
		return misused(cmd, "--resource %q: %w", f.resource, err)
	}
	return nil
}

// checkResource says what is wrong with a resource's name, in the words of the library.
func checkResource(name string) error {
	d := &weir.Definitions{Resources: map[string][]weir.Limit{name: nil}}
	_, err := d.Normalize()
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return errors.New(e.Reason)
	}
	return nil
}
