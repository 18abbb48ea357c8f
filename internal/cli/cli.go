// Package cli is the command line of weir. It has the tree of commands and the commands that
// operate weir; the commands replay, loadtest and demo are in internal/lab.
//
// [Run] makes a [console.App] for one run of the program, with its streams and environment, builds
// the tree, and executes the command line. The exit code of the error follows from how a command
// marked it; see package console.
//
// There are three kinds of commands:
//
//   - Commands that make one call, such as reserve, status or entity set. Each has a [connect.Plan],
//     which reads arguments and flags and returns a [connect.Action]. Package connect opens the
//     server or the store that the flags name, runs the action, closes it, and prints the
//     [connect.Answer] as a table or as JSON.
//   - Commands that administer a DynamoDB table: table and namespace. They open the table directly.
//   - serve, which opens a store and runs a server of internal/server until it is interrupted, and
//     commands without a server or store, such as limits check and man.
//
// Nothing in the package is shared between two calls of Run, so that tests can run commands at the
// same time. The package has no locks of its own.
package cli

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab"
)

// Run runs one command line, without the program's name, until it is done or ctx ends. Errors go to
// s.Err, one line for each mistake. It returns the exit code: 0 done, 1 failed, 2 misused, 3
// denied.
func Run(ctx context.Context, args []string, s console.Streams, env func(string) string) int {
	a := &console.App{Streams: s, Env: env}
	return a.Execute(ctx, newRoot(a), args) //nolint:contextcheck // A command gets its context when it is executed.
}

const rootHelp = `weir limits calls to LLM APIs: before a call it reserves what the call may use
(requests, tokens, a slot, money) on every limit that applies, all or nothing; after the call it
settles what was really used.

Exit codes: 0 done, 1 failed, 2 misused, 3 denied.`

// helpWidth is the width of the help, in columns.
const helpWidth = 80

// newRoot builds the whole tree of commands.
func newRoot(a *console.App) *cobra.Command {
	root := console.Group(&cobra.Command{
		Use:   "weir",
		Short: "Limit calls to LLM APIs",
		Long:  rootHelp,
		Example: `  weir demo
  weir limits check limits.yaml
  weir serve --limits limits.yaml
  weir reserve acme gpt-4o rpm=1 tpm=500
  weir replay trace.csv --limits limits.yaml --entities 4`,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.RunE = showHelp
	root.SetFlagErrorFunc(console.FlagError)
	root.SetHelpCommand(helpCommand())
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ",
		"Flags.FlagUsagesWrapped "+strconv.Itoa(helpWidth)+" "))
	section(root, "Reserve and settle:", reserveCommand(a), adjustCommand(a), completeCommand(a),
		cancelCommand(a), extendCommand(a), statusCommand(a), explainCommand(a))
	section(root, "Configure:", limitsCommand(a), systemCommand(a), resourceCommand(a),
		entityCommand(a))
	section(root, "See who used what, and who changed what:", activityCommand(a),
		usageCommand(a), auditCommand(a))
	section(root, "Manage a DynamoDB table:", tableCommand(a), namespaceCommand(a),
		aggregateCommand(a), stackCommand(a))
	section(root, "Run:", serveCommand(a), localCommand(a), lab.DemoCommand(a),
		lab.ReplayCommand(a), lab.LoadtestCommand(a))
	root.AddCommand(manCommand(a), versionCommand(a))
	wrapHelp(root)
	console.WriteFlagGroups(root, helpWidth)
	return root
}

// wrapHelp wraps the descriptions of a command and its subcommands at helpWidth. Paragraphs with an
// indented line stay as they are.
func wrapHelp(cmd *cobra.Command) {
	paragraphs := strings.Split(cmd.Long, "\n\n")
	for i, p := range paragraphs {
		if !strings.Contains("\n"+p, "\n ") {
			paragraphs[i] = wrapped(p)
		}
	}
	cmd.Long = strings.Join(paragraphs, "\n\n")
	for _, c := range cmd.Commands() {
		wrapHelp(c)
	}
}

// wrapped returns a paragraph with its lines broken at helpWidth.
func wrapped(paragraph string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(paragraph) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > helpWidth:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// section adds commands under a title in the help.
func section(root *cobra.Command, title string, cmds ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range cmds {
		cmd.GroupID = title
	}
	root.AddCommand(cmds...)
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show what a command does",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, left, err := cmd.Root().Find(args)
			if err == nil && len(left) > 0 && found.HasSubCommands() {
				return found.Args(found, left)
			}
			if err != nil || len(left) > 0 {
				return console.UsageError(cmd.Root(), "unknown command %q", strings.Join(args, " "))
			}
			found.InitDefaultHelpFlag()
			return showHelp(found, nil)
		},
	}
}

func showHelp(cmd *cobra.Command, _ []string) error {
	return console.FailedError(cmd.Help())
}

func versionCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of weir and Go, and whether it has TigerBeetle",
		Example: "  weir version\n  weir version --output json",
		Args:    console.Arguments(0, 0, ""),
	}
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(*cobra.Command, []string) error {
		v := console.BuildVersion()
		return a.PrintResult(output, v, func(b *bytes.Buffer) {
			b.WriteString(v.String() + "\n")
		})
	})
	return cmd
}
