package console

import (
	"strings"

	"github.com/spf13/cobra"
)

// flagGroup is the annotation of a flag with the title under which the help lists it.
const flagGroup = "weir_group"

// GroupFlags lists the flags of cmd with these names under a title in the help. The flags must have
// been declared.
func GroupFlags(cmd *cobra.Command, title string, names ...string) {
	for _, name := range names {
		if err := cmd.Flags().SetAnnotation(name, flagGroup, []string{title}); err != nil {
			panic(err) // cmd has no such flag
		}
	}
}

// FlagSection has the flags that a command's help lists under one title.
type FlagSection struct {
	Title string
	// Usages returns a line or more for each flag, wrapped at a number of columns; 0 means that
	// lines are not wrapped.
	Usages func(columns int) string
}

// FlagSections returns the flags of cmd by their groups. Groups, and the flags in them, are in the
// order in which the flags were declared. Flags without a group come last. If no flag has a group,
// the result is one section, sorted by name.
func FlagSections(cmd *cobra.Command) []FlagSection {
	cmd.InitDefaultHelpFlag()
	flags := cmd.Flags()
	flags.SortFlags = false
	defer func() { flags.SortFlags = true }()
	titles, byTitle := []string{},
		map[string]*cobra.Command{} // each command holds the flags of a section
	add := func(title string) *cobra.Command {
		if byTitle[title] == nil {
			titles, byTitle[title] = append(titles, title), &cobra.Command{}
			byTitle[title].Flags().SortFlags = false
		}
		return byTitle[title]
	}
	var rest []func()
	for _, f := range Collect(flags.VisitAll) {
		if group := f.Annotations[flagGroup]; len(group) > 0 {
			add(group[0]).Flags().AddFlag(f)
		} else {
			rest = append(rest, func() { add("Other flags").Flags().AddFlag(f) })
		}
	}
	if len(titles) == 0 {
		return []FlagSection{{"Flags", cmd.LocalFlags().FlagUsagesWrapped}}
	}
	for _, add := range rest {
		add()
	}
	sections := make([]FlagSection, len(titles))
	for i, title := range titles {
		sections[i] = FlagSection{title, byTitle[title].Flags().FlagUsagesWrapped}
	}
	return sections
}

// WriteFlagGroups makes the help of cmd and of its subcommands list flags by their groups, wrapped
// at a number of columns, and write default durations as 1h and not as 1h0m0s. Call it after all
// flags are declared and the usage template is set.
func WriteFlagGroups(cmd *cobra.Command, columns int) {
	for _, c := range cmd.Commands() {
		WriteFlagGroups(c, columns)
	}
	for _, f := range Collect(cmd.Flags().VisitAll) {
		if f.Value.Type() == "duration" {
			f.DefValue = shortDuration(f.DefValue)
		}
	}
	sections := FlagSections(cmd)
	if len(sections) == 1 {
		return
	}
	var b strings.Builder
	for _, s := range sections {
		b.WriteString(s.Title + ":\n" + s.Usages(columns) + "\n")
	}
	before, after, _ := strings.Cut(cmd.UsageTemplate(), "Flags:\n{{.LocalFlags.")
	_, after, _ = strings.Cut(after, "}}")
	cmd.SetUsageTemplate(before + strings.TrimRight(b.String(), "\n") + after)
}

// shortDuration returns a duration as [time.Duration] writes it, without minutes and seconds that
// are 0 at its end.
func shortDuration(s string) string {
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		s = short + "m"
	}
	if short, ok := strings.CutSuffix(s, "h0m"); ok {
		s = short + "h"
	}
	return s
}
