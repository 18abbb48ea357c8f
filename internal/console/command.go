package console

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Group makes a command that only has subcommands.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.DisableFlagsInUseLine = true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return UsageError(cmd, "unknown command %q%s", args[0], suggestCommands(cmd, args[0]))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return UsageError(cmd, "give a command: %s", strings.Join(commandsOf(cmd), ", "))
	}
	return cmd
}

// suggestCommands returns the commands of a group that an unknown name may mean: those with a
// similar name, or else all. It does not list all commands of the root, because they are too many.
func suggestCommands(of *cobra.Command, name string) string {
	if near := of.SuggestionsFor(name); len(near) > 0 {
		return ": did you mean " + listed(near, "or") + "?"
	}
	if !of.HasParent() {
		return ""
	}
	return ": " + of.CommandPath() + " has " + listed(commandsOf(of), "and")
}

// commandsOf returns the names of the commands of a group, without hidden ones.
func commandsOf(group *cobra.Command) []string {
	var names []string
	for _, c := range group.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// listed joins names with commas, and the last one with a word such as "or".
func listed(names []string, word string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}

// addCompletion adds cobra's completion command. Call it after the output of root is set, because
// the command keeps that writer.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			Group(cmd)
			for _, shell := range cmd.Commands() {
				shell.RunE = RunE(shell.RunE)
			}
		}
	}
}

// Arguments checks that a command has from least to most arguments; a negative most means any
// number. The error for too few arguments names them by what.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return UsageError(cmd, "give %s", what)
		case most >= 0 && len(args) > most:
			return UsageError(cmd, "unexpected argument %q", args[most])
		}
		return nil
	}
}

// RefuseEmpty refuses empty arguments, because an unset variable of a script must not mean another
// place.
func RefuseEmpty(cmd *cobra.Command, args []string, names ...string) error {
	for i, arg := range args {
		if arg == "" {
			return UsageError(cmd, "%s must not be empty", names[min(i, len(names)-1)])
		}
	}
	return nil
}

// mayBeEmpty is the annotation of a flag for which an empty value has a meaning.
const mayBeEmpty = "weir_may_be_empty"

// AllowEmpty allows an empty value for a flag of cmd.
func AllowEmpty(cmd *cobra.Command, name string) {
	if err := cmd.Flags().SetAnnotation(name, mayBeEmpty, nil); err != nil {
		panic(err) // cmd has no such flag
	}
}

// RejectBlankFlags refuses a flag that is given with an empty value, such as an unset variable of a
// script: a reserve without the intended lease ID could charge twice.
func RejectBlankFlags(cmd *cobra.Command) error {
	var errs []error
	for _, f := range Collect(cmd.Flags().Visit) {
		_, fine := f.Annotations[mayBeEmpty]
		if !fine && f.Value.Type() == "string" && f.Value.String() == "" {
			errs = append(errs, UsageError(cmd, "--%s must not be empty", f.Name))
		}
	}
	return errors.Join(errs...)
}

// Collect returns the values that a function visits.
func Collect[T any](visit func(func(T))) []T {
	var all []T
	visit(func(v T) { all = append(all, v) })
	return all
}

// FlagError returns the error of a malformed flag. If the error is one of Go's parsers, it is
// replaced by the values that the flag accepts.
func FlagError(cmd *cobra.Command, err error) error {
	cause := errors.Unwrap(err)
	if cause == nil {
		return UsageError(cmd, "%w", err)
	}
	reason := ""
	number, ok := errors.AsType[*strconv.NumError](cause)
	switch {
	case ok && number.Func == "ParseBool":
		reason = "must be true or false"
	case ok && number.Func == "ParseUint":
		reason = fmt.Sprintf("must be a whole number from 0 to %d", uint64(math.MaxUint64))
	case ok:
		reason = fmt.Sprintf("must be a whole number, at most %d", int64(math.MaxInt64))
	case strings.HasPrefix(cause.Error(), "time: "):
		reason = "must be a duration like 30s or 5m"
	default:
		return UsageError(cmd, "%w", err)
	}
	return UsageError(cmd, "%s%s", strings.TrimSuffix(err.Error(), cause.Error()), reason)
}
