package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weir-limiter/weir"
)

// The entity that the printed lines are about, and the resource on which it may do one thing at a
// time.
const (
	demoEntity = "you"
	demoSingle = "one-at-a-time"
)

// The bodies of the lines.
type (
	demoReserve struct {
		Entity   string     `json:"entity"`
		Resource string     `json:"resource"`
		Costs    weir.Costs `json:"costs"`
	}
	demoComplete struct {
		LeaseID weir.LeaseID `json:"lease_id"`
		Actuals weir.Costs   `json:"actuals"`
	}
)

// stay prints the lines to paste and keeps them working until ctx ends. Two leases do that: one
// holds the only slot that the denied call could have, the other is there to be settled. weir.Do
// extends them, and gives them back in the end unless somebody has settled them.
func (d *demoRun) stay(ctx context.Context) error {
	printed := false
	held := &weir.Request{Entity: demoEntity, Resource: demoSingle, Costs: weir.Costs{"parallel": 1}}
	spare := &weir.Request{
		Entity: demoEntity, Resource: d.flags.read.Resource, Costs: weir.Costs{"rpm": 1, "tpm": 2000},
	}
	err := weir.Do(ctx, d.client, held, func(ctx context.Context, _ *weir.Lease) error {
		return weir.Do(ctx, d.client, spare, func(ctx context.Context, l *weir.Lease) error {
			printed = true
			if err := d.lines(l.ID); err != nil || d.flags.exit {
				return err
			}
			select {
			case <-ctx.Done():
			case err := <-d.server.err:
				d.server.err <- err // for whoever stops it
			}
			return nil
		})
	})
	if printed {
		return nil // leases that ended otherwise than planned are the user's doing
	}
	return fmt.Errorf("the lines to try need the entity %q as in examples/demo.yaml: %w",
		demoEntity, err)
}

// lines prints what to paste.
func (d *demoRun) lines(spare weir.LeaseID) error {
	if d.flags.exit {
		d.say("\nThe server ends now. Without --exit it stays up, for lines like these:\n")
	} else {
		d.say("\nThe server is still up: %s/ is its page. Ctrl-C ends it.\n", d.server.url)
	}
	fits := weir.Costs{"rpm": 1, "tpm": 500}
	for _, l := range []struct {
		title, path string
		body        any
	}{
		{"admitted", "/v1/reserve", demoReserve{demoEntity, d.flags.read.Resource, fits}},
		{
			"denied: the demo itself has the only slot, and keeps it",
			"/v1/reserve", demoReserve{demoEntity, demoSingle, weir.Costs{"parallel": 1}},
		},
		{
			"settled: 2,000 tokens were reserved for a call, and it used 812",
			"/v1/complete", demoComplete{spare, weir.Costs{"tpm": 812}},
		},
	} {
		body, err := json.Marshal(l.body)
		if err != nil {
			return err
		}
		d.say("\n# %s\ncurl -i %s%s -H 'Content-Type: application/json' -d '%s'\n",
			l.title, d.server.url, l.path, body)
	}
	return nil
}
