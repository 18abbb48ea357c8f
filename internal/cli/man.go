package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

// manResult is the output of `weir man`.
type manResult struct {
	Folder string `json:"folder"`
	Pages  int    `json:"pages"`
}

func manCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages",
		Long: `Write a manual page for each command to a folder that exists: weir.1, weir-reserve.1 and
so on. Pages that are there already are replaced.`,
		Example:           "  weir man /usr/local/share/man/man1\n  man weir-reserve",
		Args:              console.Arguments(1, 1, "a folder"),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		r := manResult{Folder: args[0]}
		if err := writePages(cmd.Root(), &r); err != nil {
			return fmt.Errorf("man: %w", err)
		}
		return a.PrintResult(output, r, func(b *bytes.Buffer) {
			fmt.Fprintf(b, "%s in %s\n", text.Plural(r.Pages, "manual page", "manual pages"), r.Folder)
		})
	})
	return cmd
}

// writePages writes the pages of a command and its subcommands, and counts them.
func writePages(cmd *cobra.Command, r *manResult) error {
	name := pageName(cmd) + "." + manSection
	//nolint:gosec // Everybody may read a manual.
	if err := os.WriteFile(filepath.Join(r.Folder, name), manPage(cmd), 0o644); err != nil {
		return err
	}
	r.Pages++
	for _, below := range cmd.Commands() {
		if !below.IsAvailableCommand() {
			continue
		}
		if err := writePages(below, r); err != nil {
			return err
		}
	}
	return nil
}

// manSection is the section of the manual for commands.
const manSection = "1"

// manPage is a command's help as a manual page. It has no date, so that the same program writes the
// same pages.
func manPage(cmd *cobra.Command) []byte {
	cmd.InitDefaultHelpFlag()
	p := &roffPage{}
	version := "weir " + console.BuildVersion().Version
	p.macro("TH", strings.ToUpper(pageName(cmd)), manSection, "", version, "weir")
	p.macro("SH", "NAME")
	p.text(pageName(cmd) + " - " + cmd.Short)
	p.macro("SH", "SYNOPSIS")
	p.literal(cmd.UseLine())
	p.macro("SH", "DESCRIPTION")
	description := cmd.Long
	if description == "" {
		description = cmd.Short + "."
	}
	p.text(description)
	if cmd.HasAvailableSubCommands() {
		p.macro("SH", "COMMANDS")
		for _, below := range cmd.Commands() {
			if below.IsAvailableCommand() {
				p.macro("TP")
				p.text(below.Name())
				p.text(below.Short)
			}
		}
	}
	p.macro("SH", "OPTIONS")
	sections := console.FlagSections(cmd)
	for _, s := range sections {
		if len(sections) > 1 {
			p.macro("SS", s.Title)
		}
		p.literal(s.Usages(0))
	}
	if cmd.Example != "" {
		p.macro("SH", "EXAMPLES")
		p.literal(cmd.Example)
	}
	p.macro("SH", "EXIT STATUS")
	p.text("0 done, 1 failed, 2 misused, 3 denied.")
	if related := related(cmd); len(related) > 0 {
		p.macro("SH", "SEE ALSO")
		p.text(strings.Join(related, ", "))
	}
	return p.b.Bytes()
}

// pageName returns the name of a command's page.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// related names the pages of the parent command and of the subcommands.
func related(cmd *cobra.Command) []string {
	var names []string
	add := func(cmd *cobra.Command) {
		names = append(names, fmt.Sprintf("%s(%s)", pageName(cmd), manSection))
	}
	if cmd.HasParent() {
		add(cmd.Parent())
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			add(below)
		}
	}
	return names
}

// roffPage is a text in roff, the language of manual pages.
type roffPage struct{ b bytes.Buffer }

// macro writes a request with its arguments.
func (p *roffPage) macro(name string, args ...string) {
	p.b.WriteString("." + name)
	for _, arg := range args {
		p.b.WriteString(` "` + strings.ReplaceAll(escapeRoff(arg), `"`, `\(dq`) + `"`)
	}
	p.b.WriteString("\n")
}

// text writes paragraphs, which are filled. A paragraph whose lines are indented stays as it is.
func (p *roffPage) text(s string) {
	for i, paragraph := range strings.Split(strings.Trim(s, "\n"), "\n\n") {
		if i > 0 {
			p.macro("PP")
		}
		if strings.HasPrefix(paragraph, " ") {
			p.literal(paragraph)
			continue
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			p.line(line)
		}
	}
}

// literal writes lines that stay as they are.
func (p *roffPage) literal(s string) {
	p.macro("nf")
	for line := range strings.SplitSeq(strings.Trim(s, "\n"), "\n") {
		p.line(line)
	}
	p.macro("fi")
}

// line writes one line of text, escaped so that roff does not read it as a request.
func (p *roffPage) line(s string) {
	s = escapeRoff(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	p.b.WriteString(s + "\n")
}

// escapeRoff escapes the characters that have a meaning in roff.
func escapeRoff(s string) string {
	return strings.NewReplacer(
		`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`,
	).Replace(s)
}
