package console_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
)

// TestFlagGroups checks that the help lists flags by groups, in the order in which they were
// declared, and that the help of a command without groups stays as it was.
func TestFlagGroups(t *testing.T) {
	t.Parallel()
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "root"}
	grouped := &cobra.Command{Use: "grouped", Run: run}
	flags := grouped.Flags()
	flags.String("zone", "", "`NAME` of the zone")
	flags.Duration("wait", time.Hour, "how long to wait")
	flags.Duration("pause", 10*time.Minute, "how long to pause")
	flags.Duration("total", 90*time.Minute, "how long in total")
	flags.Bool("other", false, "no group")
	flags.String("area", "", "`NAME` of the area")
	console.GroupFlags(grouped, "Places", "zone", "area")
	console.GroupFlags(grouped, "Times", "wait", "pause", "total")
	plain := &cobra.Command{Use: "plain", Run: run}
	plain.Flags().Bool("b", false, "second")
	plain.Flags().Bool("a", false, "first")
	root.AddCommand(grouped, plain)
	console.WriteFlagGroups(root, 80)
	for cmd, want := range map[*cobra.Command]string{
		grouped: `Usage:
  root grouped [flags]

Places:
      --zone NAME   NAME of the zone
      --area NAME   NAME of the area

Times:
      --wait duration    how long to wait (default 1h)
      --pause duration   how long to pause (default 10m)
      --total duration   how long in total (default 1h30m)

Other flags:
      --other   no group
  -h, --help    help for grouped
`,
		plain: `Usage:
  root plain [flags]

Flags:
      --a      first
      --b      second
  -h, --help   help for plain
`,
	} {
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{cmd.Name(), "--help"})
		if err := root.Execute(); err != nil {
			t.Error(err)
		}
		if out.String() != want {
			t.Errorf("got\n%s\nwant\n%s", out.String(), want)
		}
	}
}
