package cli

import (
	"context"
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
type demoNeed struct {
	resource, limit string
	kind            weir.Kind
	// least and most bound the capacity.
	least, most int64
}

// check finds out, before anything is played, whether the lines to try can work with these limits.
func (d *demoRun) check(ctx context.Context) error {
	for _, need := range []demoNeed{
		{demoSingle, "parallel", weir.Concurrency, 1, 1},
		{d.flags.read.Resource, "rpm", "", 2, 0},
		{d.flags.read.Resource, "tpm", "", 2500, 0},
	} {
		e, err := d.client.Explain(ctx, demoEntity, need.resource)
		if err == nil {
			err = need.in(e.Limits)
		}
		if err != nil {
			return fmt.Errorf("%s: the lines to try need the entity %q as in examples/demo.yaml: %w",
				d.flags.file, demoEntity, err)
		}
	}
	return nil
}

// in says what is missing among the limits of the entity.
func (n *demoNeed) in(limits []weir.Limit) error {
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
