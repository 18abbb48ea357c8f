package cli

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// liveFoot says what else became of the calls.
func liveFoot(b *bytes.Buffer, r *replay.LiveReport) {
	if len(r.Errors) > 0 {
		var codes []string
		for _, code := range slices.Sorted(maps.Keys(r.Errors)) {
			codes = append(codes, text.FormatInt(r.Errors[code])+" "+text.Printable(code))
		}
		fmt.Fprintf(b, "errors are no denials: %s\n", strings.Join(codes, ", "))
	}
	if r.Unsettled > 0 {
		fmt.Fprintf(b, "%s could not be settled\n", text.Plural(int(r.Unsettled), "lease", "leases"))
	}
	if r.Degraded > 0 {
		fmt.Fprintf(b, "%s admitted without being charged: the store did not answer\n",
			text.Plural(int(r.Degraded), "call was", "calls were"))
	}
	late := "none late"
	if r.Late > 0 {
		late = fmt.Sprintf("%s more than %s late, at most %s",
			text.FormatInt(r.Late), text.FormatMS(replay.LateBy.Milliseconds()), text.FormatMS(r.LateMaxMS))
	}
	fmt.Fprintf(b, "sent  %s, %s\n", text.Plural(int(r.Sent), "call", "calls"), late)
	if r.Stopped != "" {
		fmt.Fprintf(b, "stopped early: %s\n", r.Stopped)
	}
}
