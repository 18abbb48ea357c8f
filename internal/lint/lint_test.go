package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// rule is a rule of this repository.
type rule struct {
	name string
	// check returns its figures, in one line, and each breach.
	check func(*repo) (figures string, faults []string)
	// samples check that the rule finds its faults, and nothing else.
	samples []sample
}

// sample is a tiny repository.
type sample struct {
	name  string
	files map[string]string
	// want is part of the only fault that the sample has; empty if it has none.
	want string
}

func rules() []rule {
	return []rule{
		importRule, testingRule,
		fileRule, medianRule, functionRule, parameterRule, columnRule,
		exportRule, docRule, packageDocRule,
		initRule, globalRule,
		sleepRule, clockRule,
		textRule, internalsRule, dependencyRule, toolRule,
	}
}

func TestRepository(t *testing.T) {
	t.Parallel()
	r, err := load(os.DirFS(filepath.Join("..", "..")))
	if err != nil {
		t.Fatal(err)
	}
	if r.find("go.mod") == nil {
		t.Fatal("no go.mod two folders up: the rules must see the whole module")
	}
	for _, rule := range rules() {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			figures, faults := rule.check(r)
			t.Log(figures)
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
	// The ratio is only printed. Good libraries have 1.0 to 1.6.
	code, tests := countLines(r.source(false)), countLines(r.source(true))
	t.Logf("%d lines of tests to %d lines of code: %.2f", tests, code,
		float64(tests)/float64(max(code, 1)))
}

func TestSamples(t *testing.T) {
	t.Parallel()
	for _, rule := range rules() {
		good, bad := 0, 0
		for _, s := range rule.samples {
			if s.want == "" {
				good++
			} else {
				bad++
			}
			t.Run(rule.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				s.run(t, rule)
			})
		}
		if good == 0 || bad == 0 {
			t.Errorf("%s: got %d good and %d bad samples, want some of both", rule.name, good, bad)
		}
	}
}

func (s *sample) run(t *testing.T, rule rule) {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range s.files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	_, faults := rule.check(r)
	switch {
	case s.want == "" && len(faults) > 0:
		t.Errorf("got faults %q, want none", faults)
	case s.want != "" && len(faults) != 1:
		t.Errorf("got %d faults %q, want one with %q", len(faults), faults, s.want)
	case s.want != "" && !strings.Contains(faults[0], s.want):
		t.Errorf("got fault %q, want one with %q", faults[0], s.want)
	}
}
