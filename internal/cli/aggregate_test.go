package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/store"
)

// cancelOn is a log that cancels a context when a line has a word.
type cancelOn struct {
	mu     sync.Mutex
	word   string
	cancel context.CancelFunc
	text   bytes.Buffer
}

func (c *cancelOn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(string(b), c.word) {
		c.cancel()
	}
	return c.text.Write(b)
}

// TestAggregateUntilInterrupted checks that weir aggregate counts until it is interrupted, and then
// ends with code 0.
func TestAggregateUntilInterrupted(t *testing.T) {
	t.Parallel()
	local := testkit.DynamoDB(t)
	url := "dynamodb://cli." + rand.Text()[:16] + "?region=us-east-1&endpoint=" + local.Endpoint()
	table, err := store.Table(url)
	if err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{"WEIR_STORE": url}[name] }
	run := func(ctx context.Context, log *cancelOn, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		code := Run(ctx, args, console.Streams{In: strings.NewReader(""), Out: &out, Err: log}, env)
		if code != 0 {
			t.Fatalf("weir %v: code %d: %s", args, code, log.text.String())
		}
		return out.String()
	}
	none := &cancelOn{word: "no line has this", cancel: func() {}}
	run(t.Context(), none, "table", "create")
	t.Cleanup(func() {
		if err := table.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	run(t.Context(), none, "system", "set-limits", "rpm:600")
	run(t.Context(), none, "reserve", "acme", "gpt-4o", "rpm=4")
	run(t.Context(), none, "reserve", "other", "gpt-4o", "rpm=590")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := run(ctx, &cancelOn{word: "msg=refilled", cancel: cancel}, "aggregate", "--interval", "10ms", "--refill")
	if !regexp.MustCompile(`(?m)^refills +1$`).MatchString(out) {
		t.Errorf("got %s, want a refill", out)
	}
	if out := run(t.Context(), none, "usage", "list", "acme"); !strings.Contains(out, "acme    gpt-4o         1    4\n") {
		t.Errorf("got %s", out)
	}
}
