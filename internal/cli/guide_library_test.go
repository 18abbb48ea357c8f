package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit"
)

// libraryCommands prints the commands of the Python library, one a line.
const libraryCommands = `
import click
from zae_limiter.cli import cli
def walk(c, path):
    if isinstance(c, click.Group):
        for name, sub in c.commands.items():
            walk(sub, path + [name])
    else:
        print(" ".join(path))
walk(cli, [])
`

// TestLibraryGuide checks that docs/from-zae-limiter.md has every command of the Python library, and no
// others, and that the commands of weir that it names exist.
func TestLibraryGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/from-zae-limiter.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]*)`")
	named := make(map[string]bool)
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			command, _, _ := strings.Cut(m[1], " --")
			named[command] = true
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			if words := strings.Fields(m[1]); words[0] == "weir" {
				testGuideCommand(t, words[1:])
			}
		}
	}
	cmd := testkit.ZAE(t).Command(t.Context(), "python", "-c", libraryCommands)
	all := strings.Split(strings.TrimSpace(testkit.Run(t, cmd)), "\n")
	for _, command := range all {
		if !named[command] {
			t.Errorf("the guide lacks %q", command)
		}
		delete(named, command)
	}
	for command := range named {
		t.Errorf("the guide has %q, which the library has not", command)
	}
	t.Logf("%d commands", len(all))
}

// testGuideCommand checks that weir has a command with the flags that the guide gives it.
func testGuideCommand(t *testing.T, words []string) {
	t.Helper()
	root := newRoot(&console.App{})
	cmd, rest, err := root.Find(words)
	if err != nil || cmd == root || cmd.HasSubCommands() {
		t.Errorf("the guide has weir %v, which is no command: %v", words, err)
		return
	}
	for _, word := range rest {
		name, isFlag := strings.CutPrefix(word, "--")
		if isFlag && cmd.Flags().Lookup(name) == nil {
			t.Errorf("weir %v has no flag --%s", words, name)
		}
	}
}
