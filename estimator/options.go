package estimator

import (
	"errors"
	"fmt"
)

// Options tune an [Estimator]. A nil *Options means all defaults.
type Options struct {
	// Share is the part of the calls that should stay within the estimate, in parts per million,
	// less than a million. Default: 950,000.
	Share int64
	// First is the estimate before enough calls have been learned, in tokens. Default: 1,024.
	First int64
	// Window is the number of calls that count, for each key, for each model, and for all calls
	// together; older ones are forgotten. It must be at least the number that the share needs, and
	// at most 65,535. Default: 256, or ten times what the share needs if that is more.
	Window int
	// Keys bounds the number of keys that are remembered. Default: 10,000.
	Keys int
	// Models bounds the number of models that are remembered. Default: 1,000.
	Models int
}

const (
	defaultShare  = 950_000
	defaultFirst  = 1_024
	defaultWindow = 256
	defaultKeys   = 10_000
	defaultModels = 1_000

	maxWindow = 65_535 // the largest count in a bin
)

// OptionError is a mistake in [Options].
type OptionError struct {
	Field  string // of Options
	Value  int64
	Reason string
}

// Error names the field, the value and the reason.
func (e *OptionError) Error() string {
	return fmt.Sprintf("estimator: %s %d: %s", e.Field, e.Value, e.Reason)
}

// withDefaults returns the options with defaults filled in, or every mistake in them, joined.
func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	var errs []error
	wrong := func(field string, value int64, reason string) {
		errs = append(errs, &OptionError{Field: field, Value: value, Reason: reason})
	}
	if out.Share == 0 {
		out.Share = defaultShare
	}
	if out.Share < 1 || out.Share >= million {
		wrong("Share", out.Share, "must be from 1 to 999,999 parts per million")
		out.Share = defaultShare // so that the window is checked too
	}
	if out.First == 0 {
		out.First = defaultFirst
	}
	if out.First < 0 {
		wrong("First", out.First, "must be at least 1")
	}
	need := needed(out.Share)
	if out.Window == 0 {
		out.Window = max(defaultWindow, min(10*need, maxWindow))
	}
	switch {
	case need > maxWindow:
		wrong("Share", out.Share,
			fmt.Sprintf("needs a window of %d calls, and a window has at most 65,535", need))
	case out.Window > maxWindow:
		wrong("Window", int64(out.Window), "must be at most 65,535")
	case out.Window < need:
		reason := fmt.Sprintf("must be at least %d for a share of %d", need, out.Share)
		wrong("Window", int64(out.Window), reason)
	}
	count := func(field string, n *int, byDefault int) {
		if *n == 0 {
			*n = byDefault
		}
		if *n < 0 {
			wrong(field, int64(*n), "must be at least 1")
		}
	}
	count("Keys", &out.Keys, defaultKeys)
	count("Models", &out.Models, defaultModels)
	return out, errors.Join(errs...)
}

// needed returns the smallest number of calls n for which ⌈(n+1)·share⌉ is at most n.
func needed(share int64) int {
	rest := million - share
	return int((share + rest - 1) / rest)
}
