package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const dependencyPage = "docs/dependencies.md"

// dependencyRule requires a reason for each direct requirement of go.mod, and refuses a reason for
// anything else.
var dependencyRule = rule{
	name:  "dependencies",
	check: checkDependencies,
	samples: []sample{
		{"both agree", map[string]string{
			"go.mod": "module m\n\nrequire example.com/a v1.0.0\n\n" +
				"require (\n\texample.com/b/v2 v2.1.0\n\texample.com/c v1.0.0 // indirect\n)\n",
			dependencyPage: page("`example.com/a` | it", "`example.com/b/v2` | it", ""),
		}, ""},
		{"nothing to agree on", map[string]string{"go.mod": "module m\n"}, ""},
		{"no page", map[string]string{"go.mod": "require example.com/a v1.0.0\n"}, "a: go.mod has it"},
		{"a module without a reason", map[string]string{
			"go.mod":       "require (\n\texample.com/a v1.0.0\n\texample.com/b v1.0.0\n)\n",
			dependencyPage: page("`example.com/a` | it", "`example.com/b` | ", ""),
		}, "example.com/b: go.mod"},
		{"a reason without a module", map[string]string{
			"go.mod":       "require example.com/a v1.0.0 // indirect\n",
			dependencyPage: page("`example.com/a` | it", "", ""),
		}, "example.com/a: " + dependencyPage},
		{"a module among the tools", map[string]string{
			"go.mod":       "require example.com/a v1.0.0\n",
			dependencyPage: page("", "", "`example.com/a` | it"),
		}, "example.com/a: go.mod"},
	},
}

// toolRule does the same for the tools, which the Makefile pins.
var toolRule = rule{
	name:  "tools",
	check: checkTools,
	samples: []sample{
		{"both agree", map[string]string{
			"Makefile":     "# a.com/x@v1\nrun: ; $(GO) install example.com/t/cmd/t@$(T_VERSION)\n",
			dependencyPage: page("", "", "`example.com/t/cmd/t` | it"),
		}, ""},
		{"a tool without a reason", map[string]string{
			"Makefile":     "run: ; go run example.com/t/cmd/t@v1.0.0\n",
			dependencyPage: page("`example.com/t/cmd/t` | it", "", ""),
		}, "example.com/t/cmd/t: Makefile"},
		{"a reason without a tool", map[string]string{
			"Makefile":     "run: ; go run .\n",
			dependencyPage: page("", "", "`example.com/t/cmd/t` | it"),
		}, "example.com/t/cmd/t: " + dependencyPage},
	},
}

// page is a page of reasons: two rows for modules and one for tools.
func page(module1, module2, tool string) string {
	return "# Dependencies\n\n## Modules\n\n| module | reason |\n|---|---|\n" +
		"| " + module1 + " |\n| " + module2 + " |\n\n" +
		"## Tools\n\n| tool | reason |\n|---|---|\n| " + tool + " |\n"
}

var (
	requirement = regexp.MustCompile(`(?m)^(?:require |\t)(\S+\.\S+) v\S+$`)
	toolUse     = regexp.MustCompile(`(?i)\bgo\)? (?:run|install) (\S+)@`)
	reasonRow   = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|\\s].*\\|$")
)

func checkDependencies(r *repo) (string, []string) {
	return agree(r, "go.mod", requirement, "Modules")
}

func checkTools(r *repo) (string, []string) {
	return agree(r, "Makefile", toolUse, "Tools")
}

// agree compares what a file names with the rows of one section of the page.
func agree(r *repo, name string, names *regexp.Regexp, section string) (string, []string) {
	used := map[string]bool{}
	if f := r.find(name); f != nil {
		used = captures(names, f.text)
	}
	explained := map[string]bool{}
	if f := r.find(dependencyPage); f != nil {
		_, after, _ := strings.Cut(f.text, "\n## "+section+"\n")
		rows, _, _ := strings.Cut(after, "\n## ")
		explained = captures(reasonRow, rows)
	}
	var faults []string
	for _, m := range slices.Sorted(maps.Keys(used)) {
		if !explained[m] {
			faults = append(faults,
				fmt.Sprintf("%s: %s has it, %s has no reason for it", m, name, dependencyPage))
		}
	}
	for _, m := range slices.Sorted(maps.Keys(explained)) {
		if !used[m] {
			faults = append(faults,
				fmt.Sprintf("%s: %s has a reason for it, %s has it not", m, dependencyPage, name))
		}
	}
	return fmt.Sprintf("%d in %s, %d explained", len(used), name, len(explained)), faults
}

func captures(re *regexp.Regexp, text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		out[m[1]] = true
	}
	return out
}
