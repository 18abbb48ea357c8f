package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
)

// suggestFlags gives a command the flags for suggestions.
func suggestFlags(cmd *cobra.Command, f *replayFlags) {
	flags := cmd.Flags()
	flags.Var(&f.suggest, "suggest",
		"look for capacities that deny at most a share of the calls, like 1%")
	flags.StringVar(&f.suggestFile, "suggest-file", "",
		"with --suggest: `FILE` to write the limits to with the capacities that were found")
}

// checkSuggest looks at what goes with suggestions.
func (f *replayFlags) checkSuggest(cmd *cobra.Command) error {
	f.suggests = cmd.Flags().Changed("suggest")
	switch {
	case f.suggestFile != "" && !f.suggests:
		return errors.New(suggestFileFlag + " goes with --suggest")
	case f.suggestFile == console.StandardInput:
		return errors.New(suggestFileFlag + " -: the limits must be a file, " +
			"the report goes to standard output")
	case f.suggests && f.limits == "":
		return errors.New("--suggest goes with --limits: a server's limits are not tried out")
	case f.suggests && f.compare != "":
		return errors.New("--suggest and --compare do not go together: " +
			"write the suggested limits to a file, and compare with that")
	}
	return nil
}
