package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/text"
)

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
