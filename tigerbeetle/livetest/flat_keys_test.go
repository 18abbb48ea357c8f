//go:build cgo

package livetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// flatServers opens servers on one cluster, an emulator in this process.
type flatServers struct {
	t       *testing.T
	cluster *keptOpen
	now     time.Time
}

// keptOpen is a ledger that outlives the stores on it.
type keptOpen struct{ *emulator.Emulator }

func (keptOpen) Close() error { return nil }

func newFlatServers(t *testing.T) *flatServers {
	t.Helper()
	f := &flatServers{t: t, now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
	f.cluster = &keptOpen{emulator.New(&emulator.Options{Now: f.clock})}
	return f
}

func (f *flatServers) clock() time.Time { return f.now }

// flatLimits returns keys whose units count on themselves, on a parent too, and on a parent alone.
func flatLimits() *weir.Definitions {
	units := func(n int64) map[string][]weir.Limit {
		return map[string][]weir.Limit{"key": {{Name: "units", Capacity: n}}}
	}
	return &weir.Definitions{
		Resources: map[string][]weir.Limit{"key": {{Name: "units", Capacity: 10}}},
		Entities: map[string]weir.EntityDefinition{
			"parent": {Limits: units(100)},
			"child":  {Parent: "parent", Cascade: true},
			"bare":   {Parent: "parent", Cascade: true, Limits: bareLimits()},
			"naked":  {Parent: "parent", Cascade: true, Limits: bareLimits()},
		},
	}
}

// bareLimits returns limits that hide the units of every other level.
func bareLimits() map[string][]weir.Limit {
	return map[string][]weir.Limit{"key": {{Name: "rpm", Capacity: 10}}}
}

// open starts a new server that knows no leases.
func (f *flatServers) open() http.Handler {
	f.t.Helper()
	store, err := tigerbeetle.OpenLedger(f.t.Context(), f.cluster, &tigerbeetle.Options{
		Definitions: flatLimits(), Poll: -1, Now: f.clock,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	l, err := limiter.New(store, &limiter.Options{Now: f.clock})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = l.Close() })
	return httphandler.New(l, nil)
}

// post sends a body to a verb, expects a status, and returns the answer's members.
func (f *flatServers) post(to http.Handler, verb, body string, status int) map[string]any {
	f.t.Helper()
	r := httptest.NewRequestWithContext(f.t.Context(), http.MethodPost, "/v1/"+verb, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	if w.Code != status {
		f.t.Fatalf("%s %s: %d %s, want %d", verb, body, w.Code, w.Body, status)
	}
	members := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &members); err != nil {
		f.t.Fatal(err)
	}
	return members
}

// left expects units to be available on some keys. In a status a key comes before its parent.
func (f *flatServers) left(at http.Handler, want map[string]int64) {
	f.t.Helper()
	for key, n := range want {
		w := httptest.NewRecorder()
		at.ServeHTTP(w, httptest.NewRequestWithContext(f.t.Context(), http.MethodGet,
			"/v1/status?entity="+key+"&resource=key", nil))
		var s struct {
			Limits []struct {
				Entity, Limit string
				Available     int64
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
			f.t.Fatal(err)
		}
		if len(s.Limits) == 0 || s.Limits[0].Entity != key || s.Limits[0].Available != n {
			f.t.Errorf("%s has %+v, want %d", key, s.Limits, n)
		}
	}
}

// TestFlatKeysOnAnyServer checks that a lease of flat keys can be updated by key on a server that
// has never seen it, and repeated on another one.
func TestFlatKeysOnAnyServer(t *testing.T) {
	t.Parallel()
	f := newFlatServers(t)
	a := f.open()
	reserved := f.post(a, "reserve", `{"requirements":[{"key":"k2","amount":6},{"key":"k1","amount":3}]}`, 200)
	lease := fmt.Sprintf(`{"lease_id":%q`, reserved["lease_id"])
	b := f.open()
	f.left(b, map[string]int64{"k1": 7, "k2": 4})
	wrong := f.post(b, "complete", lease+`,"actuals":[{"key":"k3","actual_amount":1}]}`, 400)
	if wrong["field"] != "actuals[0].key" || wrong["value"] != "k3" || wrong["reason"] != "was not reserved" {
		t.Errorf("a wrong key: %v", wrong)
	}
	unnamed := f.post(b, "complete", lease+`,"actuals":[{"units":1},{"units":1}]}`, 400)
	if unnamed["reason"] != "must name the keys, because several were reserved" {
		t.Errorf("no key: %v", unnamed)
	}
	f.post(b, "adjust", lease+`,"seq":1,"totals":[{"key":"k1","amount":8}]}`, 200)
	f.left(b, map[string]int64{"k1": 2, "k2": 4})
	complete := lease + `,"actuals":[{"key":"k2","actual_amount":2},{"key":"k1","actual_amount":1}]}`
	done := f.post(f.open(), "complete", complete, 200)
	reordered := lease + `,"actuals":[{"key":"k1","actual_amount":1},{"key":"k2","actual_amount":2}]}`
	other := lease + `,"actuals":[{"key":"k1","actual_amount":1},{"key":"k2","actual_amount":3}]}`
	for _, server := range []http.Handler{a, b, f.open()} {
		f.left(server, map[string]int64{"k1": 9, "k2": 8})
		for _, repeat := range []string{complete, reordered} {
			if again := f.post(server, "complete", repeat, 200); again["at_unix_ms"] != done["at_unix_ms"] {
				t.Errorf("repeated: %v, first: %v", again, done)
			}
		}
		f.post(server, "complete", other, 409)
		f.post(server, "cancel", lease+"}", 409)
	}
}

// TestFlatKeysAdjustedElsewhere checks that a server whose holdings are stale settles what another
// one has adjusted.
func TestFlatKeysAdjustedElsewhere(t *testing.T) {
	t.Parallel()
	f := newFlatServers(t)
	a, b := f.open(), f.open()
	reserved := f.post(a, "reserve", `{"requirements":[{"key":"k2","amount":6},{"key":"k1","amount":3}]}`, 200)
	lease := fmt.Sprintf(`{"lease_id":%q`, reserved["lease_id"])
	f.post(b, "adjust", lease+`,"seq":1,"totals":[{"key":"k1","amount":8}]}`, 200)
	f.post(a, "complete", lease+`,"actuals":[{"key":"k2","actual_amount":1}]}`, 200)
	f.left(b, map[string]int64{"k1": 2, "k2": 9})
}

// TestFlatKeysOfParents checks that keys that cascade to one parent are distinguished on a server
// that has never seen their lease, even if they have no units of their own.
func TestFlatKeysOfParents(t *testing.T) {
	t.Parallel()
	keys := []string{"bare", "child", "naked", "parent"}
	for i, key := range keys {
		f := newFlatServers(t)
		a := f.open()
		requirements := make([]string, len(keys))
		for k := range keys {
			requirements[k] = fmt.Sprintf(`{"key":%q,"amount":%d}`, keys[k], k+1)
		}
		slices.Reverse(requirements)
		reserved := f.post(a, "reserve", `{"requirements":[`+strings.Join(requirements, ",")+`]}`, 200)
		f.left(a, map[string]int64{"child": 8, "parent": 90})
		b := f.open()
		f.post(b, "complete", fmt.Sprintf(`{"lease_id":%q,"actuals":[{"key":%q,"actual_amount":0}]}`,
			reserved["lease_id"], key), 200)
		child := int64(8)
		if key == "child" {
			child = 10
		}
		f.left(a, map[string]int64{"child": child, "parent": 90 + int64(i+1)})
	}
}

// TestFlatKeysNotReserved checks that leases without flat keys, and ancestors of keys, cannot be
// settled by key.
func TestFlatKeysNotReserved(t *testing.T) {
	t.Parallel()
	f := newFlatServers(t)
	a := f.open()
	plain := f.post(a, "reserve", `{"entity":"k1","resource":"key","costs":{"units":3}}`, 200)
	child := f.post(a, "reserve", `{"requirements":[{"key":"child","amount":3}]}`, 200)
	for _, server := range []http.Handler{f.open(), a} {
		f.post(server, "complete", fmt.Sprintf(
			`{"lease_id":%q,"actuals":[{"key":"k1","actual_amount":1}]}`, plain["lease_id"]), 404)
		f.post(server, "complete", fmt.Sprintf(
			`{"lease_id":%q,"actuals":[{"key":"parent","actual_amount":1}]}`, child["lease_id"]), 400)
	}
	f.left(a, map[string]int64{"k1": 7, "child": 7, "parent": 97})
}
