package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/chart"
)

// pageFile is where a page is written; nil is nowhere.
type pageFile struct{ *console.AtomicFile }

// createPage begins the file for a page where one is wanted.
func (f *replayFlags) createPage() (*pageFile, error) {
	if f.html == "" {
		return nil, nil
	}
	file, err := console.CreateWhole("--html", f.html)
	if err != nil {
		return nil, err
	}
	return &pageFile{file}, nil
}

// write writes the page that is made, whole or not at all.
func (p *pageFile) write(make func() *chart.Page) error {
	if p == nil {
		return nil
	}
	if err := make().Write(p.Out); err != nil {
		return console.NameFile(p.Flag, p.Name, err)
	}
	return p.Commit()
}

// abandon removes a page that is not finished.
func (p *pageFile) abandon() {
	if p != nil {
		p.AtomicFile.Discard()
	}
}

// commandLine is the command that makes the same replay again, with the seed that was drawn.
func (f *replayFlags) commandLine(cmd *cobra.Command, trace string) string {
	words := []string{cmd.CommandPath(), shellWord(trace)}
	for _, flag := range console.Collect(cmd.Flags().Visit) {
		value := "=" + shellWord(flag.Value.String())
		switch flag.Name {
		case "seed", "output":
			continue // the one is added below, the other is not about the page
		case "cost":
			for _, name := range slices.Sorted(maps.Keys(f.costs)) {
				cost := f.costs[name]
				words = append(words, "--cost="+shellWord(name+"="+cost.String()))
			}
			continue
		}
		if flag.Value.Type() == "bool" && flag.Value.String() == "true" {
			value = ""
		}
		words = append(words, "--"+flag.Name+value)
	}
	if f.read.Entity == "" {
		words = append(words, "--seed="+strconv.FormatUint(f.seed, 10))
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word where a shell would take it for something else.
func shellWord(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=+,@%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
