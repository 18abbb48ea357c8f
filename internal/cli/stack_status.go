package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/provision"
)

// stackBody is a stack as --output json prints it.
type stackBody struct {
	Stack     string `json:"stack"`
	Status    string `json:"status"`
	Reason    string `json:"reason,omitempty"`
	ManagedBy string `json:"managed_by,omitempty"`
	Version   string `json:"weir_version,omitempty"`
	Edited    bool   `json:"edited,omitempty"`
	CreatedAt string `json:"created_at,omitempty"`
	UpdatedAt string `json:"updated_at,omitempty"`
	Table     string `json:"table,omitempty"`

	Options    *provision.Template `json:"options,omitempty"`
	Tags       map[string]string   `json:"tags,omitempty"`
	Parameters map[string]string   `json:"parameters,omitempty"`
	Outputs    map[string]string   `json:"outputs,omitempty"`
	Resources  []resourceBody      `json:"resources,omitempty"`
	Function   *functionBody       `json:"function,omitempty"`
	Prepared   *tableBody          `json:"prepared_table,omitempty"`
}

type resourceBody struct {
	Resource string `json:"resource"`
	Type     string `json:"type"`
	Name     string `json:"name,omitempty"`
	Status   string `json:"status"`
	Reason   string `json:"reason,omitempty"`
}

type functionBody struct {
	Name       string `json:"name"`
	State      string `json:"state"`
	Reason     string `json:"reason,omitempty"`
	Current    *bool  `json:"current,omitempty"`
	Mapping    string `json:"mapping,omitempty"`
	LastResult string `json:"last_result,omitempty"`
}

func newStackBody(i *provision.Info) *stackBody {
	body := &stackBody{
		Stack: i.Name, Status: i.Status, Reason: i.Reason, ManagedBy: i.MadeBy, Version: i.Version,
		Edited: i.Edited, CreatedAt: instant(i.Created), UpdatedAt: instant(i.Updated),
		Table: i.Table(), Options: i.Template, Tags: i.Tags, Parameters: i.Parameters,
		Outputs: i.Outputs,
	}
	for k := range i.Resources {
		r := &i.Resources[k]
		body.Resources = append(body.Resources,
			resourceBody{r.ID, r.Type, r.Physical, r.Status, r.Reason})
	}
	return body
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func stackStatusCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Print what is in a stack, and how it is",
		Long: `Print the status of a stack, its parameters, outputs and resources, what its function
does, and whether weir can use its table. The command changes nothing.`,
		Example: "  weir stack status limits\n  weir stack status limits --output json",
		Args:    console.Arguments(1, 1, "the name of a stack"),
	}
	return onAWS(cmd, func(cmd *cobra.Command, args []string, c *stackCall) error {
		ctx := cmd.Context()
		info, err := c.account.Describe(ctx, args[0])
		if err != nil {
			return err
		}
		body := newStackBody(info)
		f, err := c.account.Function(ctx, info)
		if err != nil {
			return err
		}
		if f != nil {
			body.Function = (*functionBody)(f)
		}
		if body.Prepared, err = c.tableBody(ctx, info.Table()); err != nil {
			return err
		}
		return a.PrintResult(c.output, body, body.table)
	})
}

// tableBody describes the table of a stack; nil if there is none yet.
func (c *stackCall) tableBody(ctx context.Context, name string) (*tableBody, error) {
	if name == "" {
		return nil, nil
	}
	info, err := c.describe(ctx, name)
	if errors.Is(err, weir.NotFound) || errors.Is(err, weir.PermissionDenied) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newTableBody(info), nil
}

// table writes all that is known of a stack.
func (body *stackBody) table(b *bytes.Buffer) {
	t := text.Table{}
	edited := ""
	if body.Edited {
		edited = "by hand, after weir had written it"
	}
	for _, row := range [][2]string{
		{"stack", body.Stack},
		{"status", strings.TrimSpace(body.Status + " " + body.Reason)},
		{"made by", strings.TrimSpace(cmp.Or(body.ManagedBy, "something else") + " " + body.Version)},
		{"edited", edited},
		{"created", body.CreatedAt},
		{"updated", body.UpdatedAt},
		{"table", body.Table},
	} {
		if row[1] != "" {
			t.Add(row[0], text.Printable(row[1]))
		}
	}
	if f := body.Function; f != nil {
		state := strings.TrimSpace(f.State + " " + f.Reason)
		if f.Current != nil && !*f.Current {
			state += ", with the code of another version"
		}
		t.Add("function", text.Printable(f.Name+": "+state))
		t.Add("its stream", strings.TrimSpace(cmp.Or(f.Mapping, "none")+" "+f.LastResult))
	}
	if p := body.Prepared; p != nil {
		use := "yes"
		if p.Refused != "" {
			use = "no: " + p.Refused
		}
		t.Add("weir uses it", text.Printable(use))
	}
	t.Write(b)
	for _, part := range []struct {
		title  string
		values map[string]string
	}{{"parameters", body.Parameters}, {"outputs", body.Outputs}, {"tags", body.Tags}} {
		if len(part.values) == 0 {
			continue
		}
		b.WriteString("\n" + part.title + "\n")
		t := text.Table{}
		for _, key := range slices.Sorted(maps.Keys(part.values)) {
			t.Add("  "+text.Printable(key), text.Printable(part.values[key]))
		}
		t.Write(b)
	}
	if len(body.Resources) == 0 {
		return
	}
	b.WriteString("\nresources\n")
	t = text.Table{}
	for k := range body.Resources {
		r := &body.Resources[k]
		t.Add("  "+r.Resource, r.Status, text.Printable(r.Name+" "+r.Reason))
	}
	t.Write(b)
}

func stackListCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the stacks of weir and of the Python library",
		Long: `List the stacks of a region that weir or the Python library zae-limiter has deployed,
by name. The command changes nothing.`,
		Example: "  weir stack list --region eu-central-1",
		Args:    console.Arguments(0, 0, ""),
	}
	return onAWS(cmd, func(cmd *cobra.Command, _ []string, c *stackCall) error {
		found, err := c.account.List(cmd.Context())
		if err != nil {
			return err
		}
		body := struct {
			Stacks []*stackBody `json:"stacks"`
		}{[]*stackBody{}}
		t := text.Table{}
		t.Add("STACK", "STATUS", "MADE BY", "TABLE", "CREATED", "UPDATED")
		for _, info := range found {
			s := newStackBody(info)
			s.Parameters, s.Outputs = nil, nil
			body.Stacks = append(body.Stacks, s)
			t.Add(text.Printable(s.Stack), s.Status, s.ManagedBy, text.Printable(s.Table),
				s.CreatedAt, s.UpdatedAt)
		}
		return a.PrintResult(c.output, body, func(b *bytes.Buffer) {
			if len(found) == 0 {
				b.WriteString("no stacks\n")
				return
			}
			t.Write(b)
		})
	})
}
