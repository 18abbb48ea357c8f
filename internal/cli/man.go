package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

// manResult is what `weir man` prints.
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
		return a.PrintResult(*output, r, func(b *bytes.Buffer) {
			fmt.Fprintf(b, "%s in %s\n", text.Plural(r.Pages, "manual page", "manual pages"), r.Folder)
		})
	})
	return cmd
}

// writePages writes the page of a command and those of the commands below it, and counts them.
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
