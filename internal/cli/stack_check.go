package cli

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/provision"
)

// checkBody is the result of a check, as --output json prints it.
type checkBody struct {
	Stack    string        `json:"stack"`
	OK       bool          `json:"ok"`
	Findings []findingBody `json:"findings"`
}

type findingBody struct {
	Part     string `json:"part"`
	Problem  string `json:"problem"`
	Todo     string `json:"todo,omitempty"`
	Harmless bool   `json:"harmless,omitempty"`
}

func stackCheckCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Check whether a stack is as it should be",
		Long: `Check a stack: its status, its template, each resource against the template (drift,
which takes a minute), the function and what sends it the stream, and the table with its version
record. The command changes nothing.

The exit code is 0 if the stack works, also if an upgrade is available, and 1 if something is
wrong.`,
		Example: "  weir stack check limits",
		Args:    console.Arguments(1, 1, "the name of a stack"),
	}
	return onAWS(cmd, func(cmd *cobra.Command, args []string, c *stackCall) error {
		ctx := cmd.Context()
		info, err := c.account.Describe(ctx, args[0])
		if err != nil {
			return err
		}
		found, err := c.account.Check(ctx, info)
		if err != nil {
			return err
		}
		if name := info.Table(); name != "" {
			described, err := c.describe(ctx, name)
			if err != nil {
				found = append(found, provision.Finding{What: name, Problem: reasonIn(err)})
			} else {
				found = append(found, checkOfTable(described)...)
			}
		}
		body := &checkBody{Stack: info.Name, OK: true, Findings: []findingBody{}}
		problems := 0
		for i := range found {
			f := &found[i]
			body.Findings = append(body.Findings, findingBody{f.What, f.Problem, f.Todo, f.Harmless})
			if !f.Harmless {
				problems++
			}
		}
		body.OK = problems == 0
		err = a.PrintResult(c.output, body, body.table)
		if problems > 0 {
			err = errors.Join(fmt.Errorf("stack %s has %s", info.Name,
				text.Plural(problems, "problem", "problems")), err)
		}
		return err
	})
}

// checkOfTable returns what is wrong with the table of a stack.
func checkOfTable(info *dynamodb.TableInfo) []provision.Finding {
	var found []provision.Finding
	if info.Refused != nil {
		found = append(found, provision.Finding{What: info.Name, Problem: reasonIn(info.Refused)})
	}
	if info.Stream == "" {
		found = append(found, provision.Finding{
			What: info.Name, Problem: "has no stream, so no usage is counted",
			Todo: "weir table stream on",
		})
	}
	if info.TTL == "" {
		found = append(found, provision.Finding{
			What: info.Name, Problem: "has no time to live, so nothing on it expires",
			Todo: "aws dynamodb update-time-to-live --table-name " + info.Name +
				" --time-to-live-specification Enabled=true,AttributeName=ttl",
		})
	}
	return found
}

// table writes what was found.
func (body *checkBody) table(b *bytes.Buffer) {
	if len(body.Findings) == 0 {
		b.WriteString("stack " + text.Printable(body.Stack) + " is as it should be\n")
		return
	}
	for i := range body.Findings {
		f := &body.Findings[i]
		kind := "wrong"
		if f.Harmless {
			kind = "note"
		}
		b.WriteString(kind + "  " + text.Printable(f.Part+" "+f.Problem) + "\n")
		if f.Todo != "" {
			b.WriteString("       " + text.Printable(f.Todo) + "\n")
		}
	}
}
