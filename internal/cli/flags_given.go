package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// mayBeEmpty marks a flag for which empty means something of its own.
const mayBeEmpty = "weir_may_be_empty"

// allowEmpty marks a flag of cmd.
func allowEmpty(cmd *cobra.Command, name string) {
	if err := cmd.Flags().SetAnnotation(name, mayBeEmpty, nil); err != nil {
		panic(err) // only where there is no such flag
	}
}

// refuseBlankFlags refuses a flag that is given and yet empty, as a variable of a script may be
// that was never set: a lease ID that is not there would charge twice.
func refuseBlankFlags(cmd *cobra.Command) error {
	var errs []error
	for _, f := range visited(cmd.Flags().Visit) {
		_, fine := f.Annotations[mayBeEmpty]
		if !fine && f.Value.Type() == "string" && f.Value.String() == "" {
			errs = append(errs, misused(cmd, "--%s must not be empty", f.Name))
		}
	}
	return errors.Join(errs...)
}

// visited returns what a function visits.
func visited[T any](visit func(func(T))) []T {
	var all []T
	visit(func(v T) { all = append(all, v) })
	return all
}

// flagError says what is wrong with a flag. Where the words are those of a parser of Go's, it says
// instead what the flag takes.
func flagError(cmd *cobra.Command, err error) error {
	cause := errors.Unwrap(err)
	if cause == nil {
		return misused(cmd, "%w", err)
	}
	reason := ""
	number, ok := errors.AsType[*strconv.NumError](cause)
	switch {
	case ok && number.Func == "ParseBool":
		reason = "must be true or false"
	case ok && number.Func == "ParseUint":
		reason = fmt.Sprintf("must be a whole number from 0 to %d", uint64(math.MaxUint64))
	case ok:
		reason = fmt.Sprintf("must be a whole number, at most %d", int64(math.MaxInt64))
	case strings.HasPrefix(cause.Error(), "time: "):
		reason = "must be a duration like 30s or 5m"
	default:
		return misused(cmd, "%w", err)
	}
	return misused(cmd, "%s%s", strings.TrimSuffix(err.Error(), cause.Error()), reason)
}
