package cli

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/metadata"
	"github.com/weir-limiter/weir/internal/text"
)

// versionCondition is the flag --if-version of a command.
type versionCondition struct{ version string }

// versionFlag adds the flag --if-version to a command.
func versionFlag(cmd *cobra.Command) *versionCondition {
	c := &versionCondition{}
	cmd.Flags().StringVar(&c.version, "if-version", "",
		"only if this `VERSION`, as --output json prints it, is still the current one; * for any")
	return c
}

// options returns the condition; nil if the flag was not given.
func (c *versionCondition) options() *change.Options {
	if c.version == "" {
		return nil
	}
	return &change.Options{IfVersion: c.version}
}

// entitySettings are the flags of entity set.
type entitySettings struct {
	parent   string
	cascade  bool
	name     string
	metadata []string
	remove   []string
}

func setEntityCommand(a *console.App) *cobra.Command {
	f := &entitySettings{}
	cmd := entityArgument(&cobra.Command{
		Use:     "set ENTITY",
		Aliases: []string{"create"},
		Short:   "Declare an entity, or change what is known of it",
		Long: `Declare an entity, or change its parent, whether it cascades, its name and its
metadata. Anything that no flag names stays as it is, and so do the entity's limits; --parent ""
removes the parent, and --name "" the name.

With --cascade, every charge on the entity is also made on its parent, all or nothing.

The command reads the entity, changes it, and writes it on condition that nobody else has changed
it meanwhile. If somebody has, it says who, and changes nothing: run it again.`,
		Example: `  weir entity set acme --name "Acme Inc." --metadata team=search
  weir entity set acme-bot --parent acme --cascade
  weir entity set acme-bot --cascade=false --remove-metadata team`,
	})
	flags := cmd.Flags()
	flags.StringVar(&f.parent, "parent", "", "parent `ENTITY`, which must exist")
	console.AllowEmpty(cmd, "parent")
	flags.BoolVar(&f.cascade, "cascade", false, "charge the parent too")
	flags.StringVar(&f.name, "name", "", "name for people: any `TEXT` of at most 1,024 bytes")
	console.AllowEmpty(cmd, "name")
	flags.StringArrayVar(&f.metadata, "metadata", nil,
		"set `KEY=VALUE` in the metadata, where VALUE is any text; may be repeated")
	flags.StringArrayVar(&f.remove, "remove-metadata", nil,
		"remove `KEY` from the metadata; may be repeated")
	conditions := versionFlag(cmd)
	return connect.Command(a, cmd, connect.Configures, func(
		cmd *cobra.Command, args []string,
	) (connect.Action, error) {
		if err := f.check(cmd); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			return f.set(ctx, cmd, c, args[0], conditions.options())
		}, console.RefuseEmpty(cmd, args, "ENTITY")
	})
}

// check refuses malformed flags.
func (f *entitySettings) check(cmd *cobra.Command) error {
	seen := map[string]bool{}
	for _, pair := range f.metadata {
		key, _, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return console.UsageError(cmd, "--metadata %q: must be KEY=VALUE", text.Printable(pair))
		}
		if seen[key] {
			return console.UsageError(cmd, "--metadata %q: is given twice", text.Printable(key))
		}
		seen[key] = true
	}
	for _, key := range f.remove {
		if key == "" || seen[key] {
			return console.UsageError(cmd, "--remove-metadata %q: must be a key that --metadata does not set",
				text.Printable(key))
		}
	}
	return nil
}

// set reads an entity, and writes it with the changes if it is still the same.
func (f *entitySettings) set(
	ctx context.Context, cmd *cobra.Command, c *connect.Connection, name string, o *change.Options,
) (*connect.Answer, error) {
	e, err := c.Admin.Entity(ctx, name)
	isNew := errors.Is(err, weir.NotFound)
	if isNew {
		e, err = &weir.EntityDefinition{}, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case o == nil && isNew:
		o = &change.Options{IfAbsent: true}
	case e.Version != "" && (o == nil || o.IfVersion == change.AnyVersion):
		// What no flag names is written as it was read, so it must be the same also with *.
		o = &change.Options{IfVersion: e.Version}
	}
	edit := f.edit(cmd, e)
	changed := edit.Apply(name, *e)
	if changed.Version, err = c.Admin.ChangeEntity(ctx, name, edit, o); err != nil {
		return nil, err
	}
	found := entityAnswer(name, &changed)
	found.Value = newEntityBody(name, &changed, c.Note())
	return found, nil
}

// edit returns the change that the flags ask for.
func (f *entitySettings) edit(cmd *cobra.Command, e *weir.EntityDefinition) *change.Entity {
	given := cmd.Flags().Changed
	out := &change.Entity{Parent: e.Parent, Cascade: e.Cascade}
	if given("parent") {
		out.Parent = f.parent
	}
	if given("cascade") {
		out.Cascade = f.cascade
	}
	if given("name") {
		out.Name = &f.name
	}
	if len(f.metadata)+len(f.remove) == 0 {
		return out
	}
	out.Metadata = map[string]any{}
	maps.Copy(out.Metadata, e.Metadata)
	for _, key := range f.remove {
		delete(out.Metadata, key)
	}
	for _, pair := range f.metadata {
		key, value, _ := strings.Cut(pair, "=")
		out.Metadata[key] = value
	}
	return out
}

// writeMetadata prints metadata, if there are any. Values that are not texts are printed as JSON.
func writeMetadata(b *bytes.Buffer, m map[string]any) {
	if len(m) == 0 {
		return
	}
	b.WriteString("\n")
	t := text.Table{Heads: []string{"METADATA", "VALUE"}}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		t.Add(key, metadata.Text(m[key]))
	}
	t.Write(b)
}
