//go:build cgo

package livetest

import (
	"time"

	"github.com/weir-limiter/weir"
)

// expected returns what each account should have in use once all windows on the brief resource have
// ended.
func (k *killing) expected() ledger {
	l := ledger{}
	for _, h := range k.leases {
		l.take(h.request)
		l.settle(h.request, h.used)
		if h.request.Resource == brief {
			l[account{h.request.Entity, "window"}] = 0
		}
	}
	return l
}

// resourceOf returns the entities and the resource that each of them uses.
func (k *killing) resourceOf() map[string]string {
	out := map[string]string{}
	for _, h := range k.leases {
		out[h.request.Entity] = h.request.Resource
	}
	return out
}

// growth checks windows that had ended when a completion added units: the added units are occupied
// from then on.
func (k *killing) growth() {
	k.t.Helper()
	checked := 0
	for entity, resource := range k.resourceOf() {
		if resource != brief {
			continue
		}
		before := time.Now()
		used := k.inUse(k.servers[0], entity, resource)["window"]
		after := time.Now()
		var sure, maybe int64
		for _, h := range k.leases {
			n, named := h.used["window"]
			grown := n - h.request.Costs["window"]
			if h.request.Entity != entity || !named || grown <= 0 {
				continue
			}
			if end := h.receipt.At.Add(span); end.After(after) {
				sure += grown
				maybe += grown
			} else if end.Add(late).After(before) {
				maybe += grown
			}
		}
		if used < sure || used > maybe {
			k.t.Errorf("%s: window: %d in use, want %d to %d", entity, used, sure, maybe)
		}
		if sure > 0 {
			checked++
		}
	}
	if checked == 0 {
		k.t.Error("no window had grown")
	}
}

// inUse returns what is in use of an entity's limits according to a server.
func (k *killing) inUse(s *served, entity, resource string) map[string]int64 {
	k.t.Helper()
	limits, err := s.Status(k.t.Context(), entity, resource)
	if err != nil {
		k.t.Error(err)
	}
	used := map[string]int64{}
	for _, l := range limits {
		if l.Entity == entity {
			used[l.Limit] = l.Capacity - l.Available
		}
	}
	return used
}

// standing compares every limit with the arithmetic, on both servers.
func (k *killing) standing() {
	k.t.Helper()
	want, compared := k.expected(), 0
	for entity, resource := range k.resourceOf() {
		for _, s := range k.servers {
			got := k.inUse(s, entity, resource)
			for _, limit := range limitNames {
				compared++
				if n := want[account{entity, limit}]; got[limit] != n {
					k.t.Errorf("%s: %s: %d in use, want %d", entity, limit, got[limit], n)
				}
			}
		}
	}
	k.t.Logf("%d statuses as computed", compared)
}

// probe takes exactly what is left of every limit, and checks that not one more unit fits.
func (k *killing) probe() {
	k.t.Helper()
	used := k.expected()
	turn := 0
	for entity, resource := range k.resourceOf() {
		for _, limit := range limitNames[:4] {
			ask := func(n int64) error {
				turn++
				costs := weir.Costs{"slots": 0}
				costs[limit] = n
				r := &weir.Request{Entity: entity, Resource: resource, Costs: costs}
				_, err := k.servers[turn%2].Reserve(k.t.Context(), r)
				return err
			}
			left := room(limit) - used[account{entity, limit}]
			if left > 0 {
				if err := ask(left); err != nil {
					k.t.Errorf("%s: %s: %d are left: %v", entity, limit, left, err)
				}
			}
			if err := ask(1); !isDenied(err) {
				k.t.Errorf("%s: %s: one more than is left: got %v, want a denial", entity, limit, err)
			}
		}
	}
}
