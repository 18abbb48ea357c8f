package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-limiter/weir/internal/console"
)

// checkFiles makes sure that standard input is read once, and that nothing is written over what is
// read or over what else is written.
func (f *replayFlags) checkFiles(trace string) error {
	switch {
	case f.limits == console.StandardInput && trace == console.StandardInput:
		return errors.New("trace and limits cannot both come from standard input")
	case f.compare == console.StandardInput && (trace == console.StandardInput || f.limits == console.StandardInput):
		return errors.New("only one of trace, --limits and --compare can come from standard input")
	case f.decisions == console.StandardInput:
		return errors.New("--decisions -: the decisions must go to a file, the report goes to standard output")
	case f.html == console.StandardInput:
		return errors.New("--html -: the page must be a file, the report goes to standard output")
	}
	read := []string{trace, f.limits, f.compare}
	written := [][2]string{{"--decisions", f.decisions}, {"--html", f.html}, {suggestFileFlag, f.suggestFile}}
	for i, w := range written {
		flag, name := w[0], w[1]
		for _, other := range read {
			if sameFile(name, other) {
				return fmt.Errorf("%s %s: would replace what is read", flag, name)
			}
		}
		for _, other := range written[:i] {
			if sameFile(name, other[1]) {
				return fmt.Errorf("%s and %s both name the file %s", other[0], flag, name)
			}
		}
	}
	return nil
}

// sameFile reports whether two names mean one file, also by way of links.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
