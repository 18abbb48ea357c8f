package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
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

// keepRunning prints the lines to paste and keeps them working until ctx ends. Two leases do that: one
// holds the only slot that the denied call could have, the other is there to be settled. weir.Do
// extends them, and gives them back in the end unless somebody has settled them.
func (d *demoRun) keepRunning(ctx context.Context) error {
	printed := false
	held := &weir.Request{Entity: demoEntity, Resource: demoSingle, Costs: weir.Costs{"parallel": 1}}
	spare := &weir.Request{
		Entity: demoEntity, Resource: d.flags.read.Resource, Costs: weir.Costs{"rpm": 1, "tpm": 2000},
	}
	err := weir.Do(ctx, d.client, held, func(ctx context.Context, _ *weir.Lease) error {
		return weir.Do(ctx, d.client, spare, func(ctx context.Context, l *weir.Lease) error {
			printed = true
			if err := d.printCommands(l.ID); err != nil || d.flags.exit {
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

// printCommands prints what to paste.
func (d *demoRun) printCommands(spare weir.LeaseID) error {
	if d.flags.exit {
		d.printf("\nThe server ends now. Without --exit it stays up, for lines like these:\n")
	} else {
		d.printf("\nThe server is still up: %s/ is its page. Ctrl-C ends it.\n", d.server.url)
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
		d.printf("\n# %s\ncurl -i %s%s -H 'Content-Type: application/json' -d '%s'\n",
			l.title, d.server.url, l.path, body)
	}
	return nil
}

// checkDemoListen refuses an address that the demo cannot listen on: without bearer tokens
// everybody who reaches it is admin, and it has no flag for any.
func checkDemoListen(cmd *cobra.Command, listen string) error {
	refuse := func(reason string) error {
		return console.UsageError(cmd, "%w", &weir.Error{
			Code: weir.Invalid, Field: "listen", Value: listen, Reason: reason,
		})
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return refuse("must be host:port, such as " + connect.DefaultListen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return refuse("must have a port from 0 to 65535")
	}
	address, err := netip.ParseAddr(host)
	if !strings.EqualFold(host, "localhost") && (err != nil || !address.Unmap().IsLoopback()) {
		return refuse("must be a loopback address: the demo lets everybody in as admin")
	}
	return nil
}

// listens reports whether an error is that an address could not be listened on.
func listens(err error) bool {
	e, ok := errors.AsType[*weir.Error](err)
	return ok && e.Code == weir.Unavailable && e.Field == "listen"
}

// The limits that the printed lines need, by resource; the kind is empty where any will do.
type demoRequirement struct {
	resource, limit string
	kind            weir.Kind
	// least and most bound the capacity.
	least, most int64
}

// check finds out, before anything is played, whether the lines to try can work with these limits.
func (d *demoRun) check(ctx context.Context) error {
	for _, need := range []demoRequirement{
		{demoSingle, "parallel", weir.Concurrency, 1, 1},
		{d.flags.read.Resource, "rpm", "", 2, 0},
		{d.flags.read.Resource, "tpm", "", 2500, 0},
	} {
		e, err := d.client.Explain(ctx, demoEntity, need.resource)
		if err == nil {
			err = need.missing(e.Limits)
		}
		if err != nil {
			return fmt.Errorf("%s: the lines to try need the entity %q as in examples/demo.yaml: %w",
				d.flags.file, demoEntity, err)
		}
	}
	return nil
}

// missing says what is missing among the limits of the entity.
func (n *demoRequirement) missing(limits []weir.Limit) error {
	for i := range limits {
		l := &limits[i]
		switch {
		case l.Name != n.limit:
			continue
		case n.kind != "" && l.Kind != n.kind:
			return fmt.Errorf("limit %q on resource %q: is a %s, and must be a %s",
				n.limit, n.resource, l.Kind, n.kind)
		case n.most > 0 && (l.Capacity > n.most || l.Shadow):
			return fmt.Errorf("limit %q on resource %q: must deny what is above %d",
				n.limit, n.resource, n.most)
		case l.Capacity < n.least:
			return fmt.Errorf("limit %q on resource %q: its capacity is %d, and must be at least %d",
				n.limit, n.resource, l.Capacity, n.least)
		}
		return nil
	}
	return fmt.Errorf("limit %q on resource %q: is missing", n.limit, n.resource)
}
