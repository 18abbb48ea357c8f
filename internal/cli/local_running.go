package cli

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/local"
)

// errNotRunning is the error of commands that need the local server.
var errNotRunning = errors.New("DynamoDB Local is not running: start it with weir local up")

func localDownCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the server",
		Long: `End the server that weir local up has started, and no other process. Data in memory is
gone then. If no server runs, the command says so and changes nothing.`,
		Example: "  weir local down",
		Args:    console.Arguments(0, 0, ""),
	}
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		s, err := localServer(a)
		if err != nil {
			return err
		}
		ended, err := s.Down(cmd.Context())
		if err != nil {
			return err
		}
		body := struct {
			Ended bool `json:"ended"`
			Port  int  `json:"port,omitempty"`
		}{Ended: ended != nil}
		says := "DynamoDB Local is not running\n"
		if ended != nil {
			body.Port = ended.Port
			says = fmt.Sprintf("ended DynamoDB Local on port %d\n", ended.Port)
		}
		return a.PrintResult(output, body, func(b *bytes.Buffer) { b.WriteString(says) })
	})
	return cmd
}

func localStatusCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether the server runs, and where",
		Long: `Print the port, table, process, start and data folder of the server. The exit code is 0
if it runs, and 1 if not.`,
		Example: "  weir local status",
		Args:    console.Arguments(0, 0, ""),
	}
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		s, err := localServer(a)
		if err != nil {
			return err
		}
		state, err := s.Status(cmd.Context())
		if err != nil {
			return err
		}
		if state == nil {
			body := &localBody{}
			return errors.Join(a.PrintResult(output, body, func(*bytes.Buffer) {}), errNotRunning)
		}
		body := newLocalBody(state)
		answers := local.Answers(cmd.Context(), state.Endpoint())
		body.Answers = &answers
		return a.PrintResult(output, body, body.table)
	})
	return cmd
}

func localLogsCommand(a *console.App) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Print the server's log",
		Long: `Print what the server that runs, or that ran last, has written. The newest 1 to 2 MiB
are kept.`,
		Example: "  weir local logs --follow",
		Args:    console.Arguments(0, 0, ""),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the server ends, or until interrupted")
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		s, err := localServer(a)
		if err != nil {
			return err
		}
		return s.Logs(cmd.Context(), a.Streams.Out, follow)
	})
	return cmd
}

func localEnvCommand(a *console.App) *cobra.Command {
	shell := console.NewChoice(local.Shells()...)
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the environment in which the server is used",
		Long: `Print commands for a shell that set the variables with which weir, and every program with
an AWS SDK, uses the server that runs. They replace AWS credentials that the shell has; the new
ones mean nothing, because DynamoDB Local does not check them.`,
		Example: `  eval "$(weir local env)"
  weir local env --shell fish | source
  weir local env --shell powershell | Out-String | Invoke-Expression`,
		Args: console.Arguments(0, 0, ""),
	}
	cmd.Flags().Var(shell, "shell", "for which shell; sh is also for bash and zsh")
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		s, err := localServer(a)
		if err != nil {
			return err
		}
		state, err := s.Status(cmd.Context())
		if err != nil {
			return err
		}
		if state == nil {
			return errNotRunning
		}
		return a.PrintResult(output, newLocalBody(state).Environment, func(b *bytes.Buffer) {
			b.WriteString(local.Export(shell.String(), state.Environment()))
		})
	})
	return cmd
}

// localKeepLogCommand is started by weir local up beside the server.
func localKeepLogCommand(a *console.App) *cobra.Command {
	return &cobra.Command{
		Use:    keepLogCommand + " FILE",
		Short:  "Keep the log of a server that writes to standard input",
		Hidden: true,
		Args:   console.Arguments(1, 1, "a file"),
		RunE: console.RunE(func(_ *cobra.Command, args []string) error {
			return local.KeepLog(a.Streams.In, args[0])
		}),
	}
}

// localWaitCommand is started by weir local up, and becomes the server.
func localWaitCommand() *cobra.Command {
	return &cobra.Command{
		Use:                waitCommand + " JAVA [ARG...]",
		Short:              "Wait until told, and become Java",
		Hidden:             true,
		DisableFlagParsing: true, // the flags are those of Java
		Args:               cobra.MinimumNArgs(1),
		RunE: console.RunE(func(_ *cobra.Command, args []string) error {
			return local.Wait(local.ToldPipe(), args[0], args[1:])
		}),
	}
}
