package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
)

// TestBadClients is not parallel: it counts goroutines and bytes of the whole process.
func TestBadClients(t *testing.T) { meetBadClients(t, 1000) }

// TestBadClientsSoak is the same with ten times as many clients.
func TestBadClientsSoak(t *testing.T) {
	soak.Only(t)
	meetBadClients(t, 10_000)
}

// badClientsAtOnce is the number of bad clients that are connected at the same time.
const badClientsAtOnce = 200

// The growth of the process that is allowed when the bad clients are gone: the leases of the good
// client are remembered, and net/http and the runtime keep buffers.
const (
	spareGoroutines = 10
	spareHeapBytes  = 6 << 20
)

// meetBadClients runs bad clients against a server with short timeouts, while a good client makes
// calls.
func meetBadClients(t *testing.T, count int) {
	t.Helper()
	// A connection that is never released would use up the bound, because many more clients than
	// the bound connect.
	w := newBadWireWorld(t, "--header-timeout", "500ms", "--read-timeout", "1s",
		"--write-timeout", "2s", "--idle-timeout", "5s", "--max-connections", "300")
	w.serves(t)
	state := w.state(t)
	room := make([]byte, 8<<20)
	before := idleProcess(t, room, nil)
	peak, watched := watchProcess(room)
	good := startGoodClient(w.wireServer)
	outcomes := runBadClients(t, w.addr, count)
	good.stop()
	watched()
	after := idleProcess(t, room, before)
	t.Logf("%d bad clients, at most %d at once:\n%s", count, badClientsAtOnce, outcomes)
	slices.Sort(good.took)
	t.Logf("the good client: %d admitted, %d errors; half took up to %v, 99 %% up to %v, all up to %v",
		good.admitted, len(good.errors), good.took[len(good.took)/2],
		good.took[len(good.took)*99/100], good.took[len(good.took)-1])
	t.Logf("             %12s %12s %12s", "goroutines", "connections", "heap bytes")
	for _, p := range []struct {
		name string
		*processSize
	}{{"before", before}, {"peak", peak}, {"after", after}} {
		t.Logf("%-12s %12d %12d %12d", p.name, p.goroutines, p.connections, p.heap)
	}
	if good.admitted == 0 || len(good.errors) > 0 {
		t.Errorf("the good client: got %d admitted and errors %v, want some and none", good.admitted,
			good.errors)
	}
	if peak.connections < badClientsAtOnce/4 {
		t.Errorf("got at most %d connections at once: too few clients were connected to test the bound", peak.connections)
	}
	if after.goroutines > before.goroutines+spareGoroutines || after.connections > 0 {
		t.Errorf("got %d goroutines and %d connections when all were gone, want about %d and none",
			after.goroutines, after.connections, before.goroutines)
	}
	if after.heap > before.heap+spareHeapBytes {
		t.Errorf("got %d bytes of heap when all were gone, want at most %d more than %d",
			after.heap, spareHeapBytes, before.heap)
	}
	if now := w.state(t); now != state {
		t.Errorf("state: got\n%s\nwant\n%s", now, state)
	}
	w.serves(t)
	checkSecrets(t, w)
	if exit := w.stop(); exit != 0 {
		t.Errorf("the server ended with %d, want 0", exit)
	}
}

// processSize is the size of this process, the server and its clients together.
type processSize struct {
	goroutines, connections int
	heap                    uint64
}

// sizeOfProcess measures; room is for the stacks of all goroutines.
func sizeOfProcess(room []byte) *processSize {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	stacks := room[:runtime.Stack(room, true)]
	return &processSize{
		goroutines: runtime.NumGoroutine(),
		// Each connection that a server of net/http has is a goroutine of this name.
		connections: strings.Count(string(stacks), "net/http.(*conn).serve("),
		heap:        m.HeapAlloc,
	}
}

// idleProcess waits until no connection is open, and no more goroutines run than before, and then
// collects garbage. After a while it gives up and returns the size at that time.
func idleProcess(t *testing.T, room []byte, before *processSize) *processSize {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wireTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		runtime.GC()
		runtime.GC() // sync.Pool keeps objects for one collection
		got := sizeOfProcess(room)
		idle := got.connections == 0 &&
			(before == nil || got.goroutines <= before.goroutines+spareGoroutines)
		if idle {
			return got
		}
		select {
		case <-ctx.Done():
			return got
		case <-tick.C:
		}
	}
}

// watchProcess records the largest sizes until it is stopped. It looks only once a second, because
// a look stops the whole process.
func watchProcess(room []byte) (peak *processSize, stop func()) {
	peak = sizeOfProcess(room)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			now := sizeOfProcess(room)
			peak.goroutines = max(peak.goroutines, now.goroutines)
			peak.connections = max(peak.connections, now.connections)
			peak.heap = max(peak.heap, now.heap)
		}
	}()
	return peak, func() { close(done); <-ended }
}

// goodClient reserves and cancels, one after the other, until it is stopped.
type goodClient struct {
	stop     func()
	admitted int
	errors   []error
	// took is how long each reserve and its cancel took together.
	took []time.Duration
}

func startGoodClient(s *wireServer) *goodClient {
	c := &goodClient{}
	transport := &http.Transport{}
	client := &http.Client{Transport: transport, Timeout: wireTimeout}
	done, ended := make(chan struct{}), make(chan struct{})
	c.stop = func() { close(done); <-ended }
	go func() {
		defer close(ended)
		defer transport.CloseIdleConnections()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			start := time.Now()
			id := weir.NewLeaseID(start).String()
			err := wireCall(client, s.url+"/v1/reserve",
				`{"lease_id":"`+id+`","entity":"acme","resource":"llm","costs":{"rpm":1,"recent":1,"daily":1}}`)
			if err == nil {
				c.admitted++
				err = wireCall(client, s.url+"/v1/cancel", `{"lease_id":"`+id+`"}`)
			}
			c.took = append(c.took, time.Since(start))
			if err != nil && len(c.errors) < 10 {
				c.errors = append(c.errors, err)
			}
		}
	}()
	return c
}

// wireCall sends a verb; anything but 200 with a whole JSON body is an error.
func wireCall(client *http.Client, url, body string) error {
	ctx, cancel := context.WithTimeout(context.Background(), wireTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+wireCaller)
	got, err := client.Do(r)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(got.Body)
	_ = got.Body.Close() // it has been read
	if err != nil {
		return fmt.Errorf("%s: the answer broke off: %w", url, err)
	}
	if got.StatusCode != http.StatusOK || !json.Valid(answer) {
		return fmt.Errorf("%s: got %d %s", url, got.StatusCode, answer)
	}
	return nil
}

// runBadClients runs n bad clients, each kind in turn, and returns a table of how they ended. It
// fails the test if the server never closed one of their connections.
func runBadClients(t *testing.T, addr string, count int) string {
	t.Helper()
	kinds := badClientKinds()
	var mu sync.Mutex
	met := map[string]map[string]int{}
	var next atomic.Int64
	var all sync.WaitGroup
	for range badClientsAtOnce {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= count {
					return
				}
				kind := kinds[i%len(kinds)]
				outcome := visitBadly(t.Context(), addr, kind.behave)
				mu.Lock()
				if met[kind.name] == nil {
					met[kind.name] = map[string]int{}
				}
				met[kind.name][outcome]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	var b strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&b, "  %-40s", kind.name)
		for _, outcome := range slices.Sorted(maps.Keys(met[kind.name])) {
			fmt.Fprintf(&b, "  %s: %d", outcome, met[kind.name][outcome])
			if strings.HasPrefix(outcome, "error") {
				t.Errorf("%s: %s", kind.name, outcome)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
