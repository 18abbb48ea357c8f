package load

import (
	"errors"
	"fmt"
	"strings"
)

// maxTemplates bounds a mix.
const maxTemplates = 1000

// ParseMix reads a file with a template on each line, as [ParseTemplate] reads it. Empty lines are
// skipped, and so is what follows a #. All mistakes are returned, each with the file's name and the
// line.
func ParseMix(name string, data []byte) ([]Template, error) {
	var mix []Template
	var errs []error
	line := 0
	for text := range strings.SplitSeq(string(data), "\n") {
		line++
		text, _, _ = strings.Cut(text, "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		if len(mix) == maxTemplates {
			errs = append(errs, fmt.Errorf("%s:%d: is the line after %d requests, which are the most",
				name, line, maxTemplates))
			break
		}
		t, err := ParseTemplate(text)
		if err != nil {
			errs = append(errs, located(name, line, err)...)
			continue
		}
		mix = append(mix, *t)
	}
	if len(errs) == 0 && len(mix) == 0 {
		errs = append(errs, fmt.Errorf("%s: has no requests", name))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return mix, nil
}

// located puts a place in front of each error joined in err.
func located(name string, line int, err error) []error {
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	out := make([]error, len(errs))
	for i, err := range errs {
		out[i] = fmt.Errorf("%s:%d: %w", name, line, err)
	}
	return out
}
