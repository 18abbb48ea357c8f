package cli

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

const rootHelp = `weir limits calls to LLM APIs: before a call it reserves what the call may use
(requests, tokens, a slot, money) on every limit that applies, all or nothing; after the call it
settles what was really used.

Exit codes: 0 done, 1 failed, 2 misused, 3 denied.`

// helpWidth is how many columns the help has.
const helpWidth = 80

// root builds the whole tree of commands.
func (a *app) root() *cobra.Command {
	root := group(&cobra.Command{
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
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ",
		"Flags.FlagUsagesWrapped "+strconv.Itoa(helpWidth)+" "))
	section(root, "Reserve and settle:", a.reserveCommand(), a.adjustCommand(), a.completeCommand(),
		a.cancelCommand(), a.extendCommand(), a.statusCommand(), a.explainCommand())
	section(root, "Configure:", a.limitsCommand(), a.systemCommand(), a.resourceCommand(),
		a.entityCommand())
	section(root, "Look after a DynamoDB table:", a.tableCommand(), a.namespaceCommand(),
		a.auditCommand(), a.usageCommand())
	section(root, "Run:", a.serveCommand(), a.demoCommand(), a.replayCommand(), a.loadtestCommand())
	root.AddCommand(a.manCommand(), a.versionCommand())
	wrapHelp(root)
	return root
}

// wrapHelp breaks the lines of the descriptions of a command, and of those below it, at helpWidth.
// Paragraphs with an indented line stay as they are.
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

// section adds commands below a title of their own in the help.
func section(root *cobra.Command, title string, cmds ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range cmds {
		cmd.GroupID = title
	}
	root.AddCommand(cmds...)
}

// group makes a command one that only has others below it.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.DisableFlagsInUseLine = true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return misused(cmd, "unknown command %q%s", args[0], hint(cmd, args[0]))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return misused(cmd, "give a command: %s", strings.Join(commandsOf(cmd), ", "))
	}
	return cmd
}

// hint says which commands of a group an unknown name may stand for: those with a name like it, or
// else all. The root has too many to name.
func hint(of *cobra.Command, name string) string {
	if near := of.SuggestionsFor(name); len(near) > 0 {
		return ": did you mean " + listed(near, "or") + "?"
	}
	if !of.HasParent() {
		return ""
	}
	return ": " + of.CommandPath() + " has " + listed(commandsOf(of), "and")
}

// commandsOf returns the names of the commands of a group.
func commandsOf(group *cobra.Command) []string {
	var names []string
	for _, c := range group.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// listed joins names with commas, and the last one with a word.
func listed(names []string, word string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}

// addCompletion adds cobra's own command, which keeps the writer that root has by now.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			group(cmd)
			for _, shell := range cmd.Commands() {
				shell.RunE = run(shell.RunE)
			}
		}
	}
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
				return misused(cmd.Root(), "unknown command %q", strings.Join(args, " "))
			}
			found.InitDefaultHelpFlag()
			return showHelp(found, nil)
		},
	}
}

func showHelp(cmd *cobra.Command, _ []string) error {
	return failed(cmd.Help())
}
