package cli

import (
	"bytes"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionResult is what `weir version` prints.
type versionResult struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of weir and of Go",
		Example: "  weir version\n  weir version --output json",
		Args:    arguments(0, 0, ""),
	}
	output := outputFlag(cmd)
	cmd.RunE = run(func(*cobra.Command, []string) error {
		v := buildVersion()
		return a.print(*output, v, func(b *bytes.Buffer) {
			b.WriteString("weir " + v.Version)
			if v.Revision != "" {
				b.WriteString(" (" + v.Revision + ")")
			}
			b.WriteString(" " + v.Go + " " + v.Platform + "\n")
		})
	})
	return cmd
}

// buildVersion is what the linker noted. A build from a working tree has no version.
func buildVersion() *versionResult {
	v := &versionResult{
		Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}

// arguments makes sure that a command has from least to most arguments; most below zero is any
// number. What names them when there are too few.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return misused(cmd, "give %s", what)
		case most >= 0 && len(args) > most:
			return misused(cmd, "unexpected argument %q", args[most])
		}
		return nil
	}
}
