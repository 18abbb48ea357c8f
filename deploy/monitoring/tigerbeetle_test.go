//go:build cgo

package monitoring

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/tigerbeetle"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// sharedEmulator is a cluster that stays open when one of its stores closes.
type sharedEmulator struct{ *emulator.Emulator }

func (sharedEmulator) Close() error { return nil }

// onCluster opens a store on a cluster with a limits file.
func onCluster(t *testing.T, cluster tigerbeetle.Ledger, text string) *tigerbeetle.Store {
	t.Helper()
	m, err := manifest.Parse("limits.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := tigerbeetle.OpenLedger(t.Context(), cluster,
		&tigerbeetle.Options{Definitions: m.Definitions, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tigerBeetleLoad serves an emulated cluster.
func tigerBeetleLoad(t *testing.T) *load {
	t.Helper()
	text := `{"version": 1, "system": {"limits": {` + systemLimits + `}}}`
	g := serve(t, onCluster(t, emulator.New(nil), text), text, server.Options{LimitsOpened: []byte(text), Limiter: patient()})
	return newLoad(t, begin(), g)
}

// TestSuperseded plays two servers of one cluster with different limits files.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	const text = `{"version": 1, "system": {"limits": {"rpm": {"capacity": %d}}}}`
	cluster := sharedEmulator{emulator.New(nil)}
	open := func(capacity int) *target {
		limits := fmt.Sprintf(text, capacity)
		return serve(t, onCluster(t, cluster, limits), limits,
			server.Options{LimitsOpened: []byte(limits), Limiter: patient()})
	}
	old := open(1000)
	s := newScene(t, begin(), old)
	s.minutes(5, func() { old.reserve(6, "acme", "rpm", 200) })
	s.targets = append(s.targets, open(2000))
	eventually(t, string(weir.Superseded), func() bool {
		status, _ := old.post("/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"rpm":1}}`)
		return status == 503
	})
	s.pass(time.Minute)
	s.fires()
	refused := func() { old.reserve(6, "acme", "rpm", 503) }
	s.minutes(8, refused) // 24 within four minutes are more than a handful, and then it takes five
	s.fires()
	s.minutes(1, refused)
	s.fires("WeirLimitsSuperseded")
	s.minutes(1, refused)
	s.fires("WeirLimitsSuperseded", "WeirServerNotReady")
}
