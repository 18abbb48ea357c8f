package calls

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/smithy-go/middleware"
)

// seenVariable holds the path of the file to which the watches of a run add the rows that they see.
const seenVariable = "WEIR_CALLS_SEEN"

// updateVariable makes [Compare] write the file.
const updateVariable = "WEIR_UPDATE_GOLDEN"

// Watch compares the calls of a test with a file of calls.
type Watch struct {
	t     testing.TB
	file  string
	known map[string]bool

	mu   sync.Mutex
	seen map[string]bool
}

// New returns a watch by the file with the given path.
func New(t testing.TB, file string) *Watch {
	t.Helper()
	rows, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	return &Watch{t: t, file: file, known: rows, seen: make(map[string]bool)}
}

// Install adds the watch to the calls of a client: it is one of aws.Config.APIOptions. A call that
// the file does not have fails, and so does the test.
func (w *Watch) Install(stack *middleware.Stack) error {
	watch := func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
		made, err := Of(middleware.GetOperationName(ctx), in.Parameters)
		if err == nil {
			err = w.see(made)
		}
		if err != nil {
			w.t.Error(err)
			return out, metadata, err
		}
		return next.HandleInitialize(ctx, in)
	}
	return stack.Initialize.Add(
		middleware.InitializeMiddlewareFunc("WatchCalls", watch), middleware.After)
}

// maxFrames is more than the depth of any call.
const maxFrames = 200

func (w *Watch) see(made []Call) error {
	pcs := make([]uintptr, maxFrames)
	verbs, err := verbsBy(runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)]))
	if err != nil {
		return err
	}
	return w.add(verbs, made)
}

// add adds the rows of a call, and returns an error for one that the file does not have.
func (w *Watch) add(verbs []string, made []Call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, verb := range verbs {
		for _, c := range made {
			row := rowOf(verb, c)
			if w.seen[row] {
				continue
			}
			w.seen[row] = true
			if err := record(row); err != nil {
				return err
			}
			if !w.known[row] && !updates() {
				return fmt.Errorf("%s has no row %q: run all tests of the package with %s=1",
					w.file, row, updateVariable)
			}
		}
	}
	return nil
}

// rowOf returns the row of a call: verb, action, resource and the form of the partition, in which
// {ns} is the ID of a namespace and * the rest of a key. If the verb is [Use], an update of a
// namespace's own items has the attributes too, because it may write no others of them.
func rowOf(verb string, c Call) string {
	row := verb + " " + c.Action + " " + c.Resource
	if c.Partition == "" {
		return row
	}
	prefix := "{ns}/"
	ns, rest, whole := strings.Cut(c.Partition, "/")
	switch {
	case strings.Contains(ns, "#"): // A table of an older layout has no namespaces.
		prefix, rest = "", c.Partition
	case !whole:
		return row + " {ns}"
	case ns == "_":
		prefix = "_/"
	}
	kind, name, _ := strings.Cut(rest, "#")
	row += " " + prefix + kind + "#"
	switch {
	case name != "":
		return row + "*"
	case verb == Use && c.Action == "UpdateItem":
		return row + " " + strings.Join(c.Attributes, ",")
	}
	return row
}

func updates() bool { return os.Getenv(updateVariable) == "1" }

// record adds a row to those of the run, if it is one of all tests.
func record(row string) error {
	name := os.Getenv(seenVariable)
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(row + "\n")
	return errors.Join(err, f.Close())
}

// read returns the rows of a file. A line that begins with # is a comment.
func read(name string) (map[string]bool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			rows[line] = true
		}
	}
	return rows, nil
}

// Compare runs the tests of a package, and compares the rows that they have seen with those of the
// file whose verbs the package is responsible for. It returns the exit code: 1 if the tests have
// passed and the file has a row that none of them needs. With WEIR_UPDATE_GOLDEN=1 it writes the
// rows that were seen instead, to be reviewed before they are committed. If only some of the tests
// run, or one fails, no row is compared or removed, and rows are only added.
func Compare(run func() int, file string, responsible func(verb string) bool) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "weir-calls-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = os.Setenv(seenVariable, filepath.Join(dir, "seen"))
	}
	code := run()
	if err == nil && (code == 0 || updates()) {
		err = compare(file, code == 0 && whole(), responsible)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// whole reports whether all tests run.
func whole() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}

func compare(file string, whole bool, responsible func(verb string) bool) error {
	seen, err := read(os.Getenv(seenVariable))
	if errors.Is(err, os.ErrNotExist) {
		return nil // Without DynamoDB Local no test has run.
	}
	if err != nil {
		return err
	}
	rows, err := read(file)
	if err != nil {
		return err
	}
	var left []string
	for row := range rows {
		verb, _, _ := strings.Cut(row, " ")
		if whole && responsible(verb) && !seen[row] {
			left = append(left, row)
		}
	}
	slices.Sort(left)
	if !updates() {
		if len(left) > 0 {
			return fmt.Errorf("%s has rows that no test needs:\n%s", file, strings.Join(left, "\n"))
		}
		return nil
	}
	for _, row := range left {
		delete(rows, row)
	}
	for row := range seen {
		if verb, _, _ := strings.Cut(row, " "); responsible(verb) {
			rows[row] = true
		}
	}
	text := header + strings.Join(slices.Sorted(maps.Keys(rows)), "\n") + "\n"
	return os.WriteFile(file, []byte(text), 0o600)
}

const header = `# What weir's calls to DynamoDB need permission for: verb, action, resource, partition, and for some
# updates the attributes. The tests of package dynamodb record it, and the policies are made from it:
# see docs/stack.md.
`
