package cli

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
)

func versionCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of weir and of Go",
		Example: "  weir version\n  weir version --output json",
		Args:    console.Arguments(0, 0, ""),
	}
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(*cobra.Command, []string) error {
		v := console.BuildVersion()
		return a.PrintResult(*output, v, func(b *bytes.Buffer) {
			b.WriteString("weir " + v.Version)
			if v.Revision != "" {
				b.WriteString(" (" + v.Revision + ")")
			}
			b.WriteString(" " + v.Go + " " + v.Platform + "\n")
		})
	})
	return cmd
}
