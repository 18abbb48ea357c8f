package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/console"
)

// TestBadInputReplayFlags checks that an error about a flag of replay names the flag, and the value
// if it has one, and that nothing is replayed.
func TestBadInputReplayFlags(t *testing.T) {
	t.Parallel()
	const (
		misuse = console.ExitMisused
		wrong  = console.ExitFailed
	)
	for _, tt := range []struct {
		sent, flags string
		exit        int
		want        string
	}{
		{"a time column that is not there", "--time-column when", wrong, "trace.csv:1: header"},
		{"an input column that is not there", "--input-column in", wrong, "--input-column names one of"},
		{"an output column that is not there", "--output-column out", wrong, "--output-column names one of"},
		{"an entity column that is not there", "--entity-column Who", wrong, "--entity-column names one of"},
		{"a model column that is not there", "--model-column m", wrong, "--model-column names one of"},
		{"a duration column that is not there", "--duration-column d", wrong, "--duration-column names one of"},
		{"an empty column", "--time-column=", misuse, "--time-column must not be empty"},
		{"a column with two meanings", "--entity-column who --model-column who", misuse, `"who"`},
		{"an entity that cannot be", "--entity-column who", wrong, `trace.csv:2: who "a#b"`},
		{"a model that cannot be", "--model-column who", wrong, `trace.csv:2: who "a#b"`},
		{"a duration that is none", "--duration-column who", wrong, `trace.csv:2: who "a#b"`},
		{"an unknown unit of time", "--time-unit weeks", misuse, `"weeks"`},
		{"an unknown unit of durations", "--duration-column who --duration-unit S", misuse, `"S"`},
		{"a unit of nothing", "--duration-unit s", misuse, "--duration-unit needs"},
		{"a seed for a trace with entities", "--entity-column who --seed 1", misuse, "--entity-column"},
		{"tenants for a trace with entities", "--entity-column who --entities 3", misuse, "--entity-column"},
		{"a resource for a trace with models", "--model-column who --resource r", misuse, "--model-column"},
		{"a latency for a trace with durations", "--duration-column who --latency 1s", misuse, "--duration-column"},
		{"no estimate", "--estimate=", misuse, "must be truth, fixed:N or quantile:Q"},
		{"an unknown estimate", "--estimate max", misuse, `"max"`},
		{"a negative estimate", "--estimate fixed:-5", misuse, `"fixed:-5"`},
		{"an estimate over int64", "--estimate fixed:9223372036854775808", misuse, "does not fit in 64 bits"},
		{"a quantile of everything", "--estimate quantile:1", misuse, "between 0 and 1"},
		{"a quantile of nothing", "--estimate quantile:0", misuse, "between 0 and 1"},
		{"a quantile that no window holds", "--estimate quantile:0.999999", misuse, "quantile:0.999999"},
		{"patience without a retry", "--patience 1m", misuse, "--patience needs --retry"},
		{"no patience", "--retry --patience 0s", misuse, "--patience 0s"},
		{"negative patience", "--retry --patience -1s", misuse, "--patience -1s"},
		{"patience that never ends", "--retry --patience 1000000h", misuse, "--patience 1000000h0m0s"},
		{"patience that is none", "--retry --patience long", misuse, `"long"`},
		{"decisions to standard output", "--decisions -", misuse, "--decisions -: name a file for the decisions"},
		{"decisions to a folder", "--decisions .", wrong, "--decisions .: is not a regular file"},
		{"a page to a folder", "--html .", wrong, "--html .: is not a regular file"},
		{"a sort that is none", "--sort=perhaps", misuse, "must be true or false"},
	} {
		dir := t.TempDir()
		trace, limits := filepath.Join(dir, "trace.csv"), filepath.Join(dir, "limits.yaml")
		log := filepath.Join(dir, "decisions")
		for name, text := range map[string]string{
			trace:  "TIMESTAMP,ContextTokens,GeneratedTokens,who\n1,1,1,a#b\n",
			limits: "version: 1\nsystem: {limits: {rpm: {capacity: 10}}}\n",
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := append([]string{"replay", trace, "--limits", limits, "--decisions", log},
			strings.Fields(tt.flags)...)
		exit, message := runBad(t, args...)
		message = strings.ReplaceAll(message, trace, "trace.csv")
		if exit != tt.exit || !strings.Contains(message, tt.want) {
			t.Errorf("%s: got exit %d and %q, want %d and %q", tt.sent, exit, message, tt.exit, tt.want)
		}
		if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a decision log was left: %v", tt.sent, err)
		}
		t.Logf("%-37s → %s", tt.sent, strings.TrimSpace(message))
	}
}
