package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// The scenes show that alerts fire on what a real server exports, when something happens to it, at
// the instant that the rules promise, and not a minute before.

// limits admits everything but the denials that a scene wants.
const limits = `version: 1
system:
  on_unavailable: %s
  limits:
    rpm: {capacity: 1000000000}
    none: {kind: budget, capacity: 1, every: month}
`

// begin is when scenes begin whose servers export no instants of their own.
func begin() time.Time { return time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC) }

// TestIdle plays two hours of a server that nobody calls.
func TestIdle(t *testing.T) {
	t.Parallel()
	s := newScene(t, begin(), serve(t, inMemory(t), fmt.Sprintf(limits, "block"), server.Options{}))
	for range 12 {
		s.minutes(10, nil)
		s.fires()
	}
}

// failingStore is a store in memory that does not answer while it fails.
type failingStore struct {
	*memory.Store

	fails atomic.Bool
}

var errNoRoute = errors.New("no route to the store")

func (s *failingStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	if s.fails.Load() {
		return errNoRoute
	}
	return s.Store.Reserve(ctx, now, p, out)
}

func (s *failingStore) Ready(context.Context) error {
	if s.fails.Load() {
		return errNoRoute
	}
	return nil
}

// TestStoreFails plays an outage of the store, after 90 minutes with ten calls each. 20 calls that
// fail page nobody, and 30 do, whether they are blocked or run without limits.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	for policy, status := range map[string]int{"block": 503, "allow": 200} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			store := &failingStore{Store: inMemory(t)}
			g := serve(t, store, fmt.Sprintf(limits, policy), server.Options{})
			s := newScene(t, begin(), g)
			s.minutes(90, func() { g.reserve(10, "acme", "rpm", 200) })
			s.fires()
			store.fails.Store(true)
			fail := func() { g.reserve(10, "acme", "rpm", status) }
			s.minutes(2, fail)
			s.fires()
			s.minutes(1, fail)
			s.fires("WeirNoServerReady", "WeirStoreErrorsFastBurn", "WeirStoreErrorsSlowBurn")
			s.says("WeirStoreErrorsFastBurn", "summary", "failed 5.004% of the last hour")
			s.says("WeirNoServerReady", "summary", "No weir server of weir can reserve.")
			s.minutes(7, fail)
			s.fires("WeirNoServerReady", "WeirStoreErrorsFastBurn", "WeirStoreErrorsSlowBurn")
			s.minutes(1, fail)
			s.fires("WeirNoServerReady", "WeirServerNotReady", "WeirStoreErrorsFastBurn", "WeirStoreErrorsSlowBurn")

			store.fails.Store(false)
			s.minutes(6, func() { g.reserve(10, "acme", "rpm", 200) })
			s.fires("WeirStoreErrorsSlowBurn")
			s.minutes(30, func() { g.reserve(10, "acme", "rpm", 200) })
			s.fires()
		})
	}
}

// TestServerIsDown plays a server that ends.
func TestServerIsDown(t *testing.T) {
	t.Parallel()
	g := serve(t, inMemory(t), fmt.Sprintf(limits, "block"), server.Options{})
	s := newScene(t, begin(), g)
	s.minutes(5, nil)
	g.stop()
	s.minutes(2, nil)
	s.fires()
	s.minutes(1, nil)
	s.fires("WeirNoServerReady")
}

// TestLeasesLeak plays callers that do not settle, on a server that keeps a hundred leases: the first
// warning comes before calls are refused for long, and both end when the leases do.
func TestLeasesLeak(t *testing.T) {
	t.Parallel()
	g := serve(t, inMemory(t), fmt.Sprintf(limits, "block"),
		server.Options{Limiter: &limiter.Options{MaxLeases: 100}})
	s := newScene(t, begin(), g)
	var leases []string
	leak := func(n int) func() {
		return func() {
			for _, body := range g.reserve(n, "acme", "rpm", 200) {
				var l struct {
					ID string `json:"lease_id"`
				}
				if err := json.Unmarshal(body, &l); err != nil {
					t.Fatal(err)
				}
				leases = append(leases, l.ID)
			}
		}
	}
	s.minutes(20, leak(4)) // 80 of 100 are not too many
	s.minutes(1, leak(4))
	s.minutes(9, nil)
	s.fires()
	s.minutes(1, nil)
	s.fires("WeirLeasesNearBound")
	s.says("WeirLeasesNearBound", "summary", "has 84% of its leases in use")
	leak(6)() // one caller may have nine tenths
	refused := func() { g.reserve(12, "acme", "rpm", 503) }
	s.minutes(6, refused) // 24 within two minutes are more than a handful, and then it takes five
	s.fires("WeirLeasesNearBound")
	s.minutes(1, refused)
	s.fires("WeirLeasesNearBound", "WeirLeasesRefused", "WeirManyLeasesRefused")
	for _, id := range leases {
		if status, body := g.post("/v1/cancel", fmt.Sprintf(`{"lease_id":%q}`, id)); status != 200 {
			t.Fatalf("cancel: got %d %s", status, body)
		}
	}
	s.minutes(1, nil)
	s.fires("WeirLeasesRefused", "WeirManyLeasesRefused")
	s.minutes(4, nil)
	s.fires()
}

// TestMostCallsDenied plays an hour and a half in which eight of ten calls are denied, by a budget
// that is used up.
func TestMostCallsDenied(t *testing.T) {
	t.Parallel()
	g := serve(t, inMemory(t), fmt.Sprintf(limits, "block"), server.Options{})
	g.reserve(1, "acme", "none", 200)
	s := newScene(t, begin(), g)
	calls := func() {
		g.reserve(2, "acme", "rpm", 200)
		g.reserve(8, "acme", "none", 429)
	}
	// After 13 minutes 104 are denied, more than a hundred; then it takes an hour.
	s.minutes(72, calls)
	s.fires()
	s.minutes(1, calls)
	s.fires("WeirMostCallsDenied")
	s.says("WeirMostCallsDenied", "summary", "have denied 80% of all calls")
}

// TestReloadRefused plays a limits file with a mistake, and its correction.
func TestReloadRefused(t *testing.T) {
	t.Parallel()
	file := write(t, "limits.yaml", fmt.Sprintf(limits, "block"))
	g := serve(t, inMemory(t), "", server.Options{LimitsFile: file})
	s := newScene(t, begin(), g)
	put := func(text string, want bool) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := g.server.Reload(t.Context()); (err == nil) != want {
			t.Fatalf("reload: got %v, want done %t", err, want)
		}
	}
	put("version: 1\nsystem: {limits: {rpm: {capacity: -1}}}\n", false)
	s.minutes(5, nil)
	s.fires()
	s.minutes(1, nil)
	s.fires("WeirReloadRefused")
	s.says("WeirReloadRefused", "summary", "refused the file of its limits")
	s.minutes(120, nil)
	s.fires("WeirReloadRefused") // as long as the mistake is there
	put(fmt.Sprintf(limits, "block"), true)
	s.minutes(1, nil)
	s.fires()
}

// TestSnapshotFails plays a snapshot that cannot be written. The server takes the instants that it
// exports from the real clock, so the scene begins now, and time passes only after the last
// snapshot.
func TestSnapshotFails(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	faults := server.NewStoreFaults(nil)
	store, err := memory.OpenSnapshot(filepath.Join(folder, "file"), &memory.SnapshotOptions{
		Every: 10 * time.Millisecond, OnError: faults.Note,
	})
	if err != nil {
		t.Fatal(err)
	}
	g := serve(t, store, fmt.Sprintf(limits, "block"), server.Options{StoreFaults: faults})
	g.reserve(1, "acme", "rpm", 200)
	eventually(t, "a snapshot", func() bool { return !store.SnapshotStats().Complete.IsZero() })
	s := newScene(t, time.Now(), g)
	s.fires()
	if err := os.Rename(folder, folder+".gone"); err != nil {
		t.Fatal(err)
	}
	g.reserve(1, "acme", "rpm", 200)
	eventually(t, "a failed snapshot", func() bool { return store.SnapshotStats().Failures > 0 })
	last := store.SnapshotStats().Complete
	s.minutes(1, nil)
	exported := s.value("weir_snapshot_last_success_timestamp_seconds")
	if want := float64(last.UnixMilli()) / 1000; exported != want {
		t.Errorf("got %v exported, want %v", exported, want)
	}
	for s.at.Add(time.Minute).Before(last.Add(299 * time.Second)) {
		s.minutes(1, nil)
		s.fires()
	}
	s.pass(last.Add(300 * time.Second).Sub(s.at))
	s.fires()
	s.pass(time.Second)
	s.fires("WeirSnapshotTooOld")
	s.says("WeirSnapshotTooOld", "summary", "has written no snapshot for 5m 1s")
	if err := os.Rename(folder+".gone", folder); err != nil { // or closing fails
		t.Fatal(err)
	}
	eventually(t, "a snapshot", func() bool { return store.SnapshotStats().Complete.After(last) })
}

// TestCertificate plays a certificate that is not renewed in time, and then is.
func TestCertificate(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Now().Truncate(time.Second)
	cert, key := certificate(t, now.Add(-80*day), now.Add(7*day+5*time.Minute+30*time.Second))
	certFile, keyFile := write(t, "cert.pem", cert), write(t, "key.pem", key)
	g := serve(t, inMemory(t), fmt.Sprintf(limits, "block"), server.Options{CertFile: certFile, KeyFile: keyFile})
	g.client.Transport = trusting(t, cert)
	s := newScene(t, now, g)
	s.minutes(15, nil) // from minute 6 on it has less than seven days, and then it takes ten minutes
	s.fires()
	s.minutes(1, nil)
	s.fires("WeirCertificateExpiresSoon")
	s.says("WeirCertificateExpiresSoon", "summary", "expires in 6d 23h 49m 30s")

	s.pass(6*day - 11*time.Minute)
	s.pass(time.Minute)
	for range 10 {
		s.minutes(1, nil)
	}
	s.fires("WeirCertificateExpiresNow", "WeirCertificateExpiresSoon")
	cert, key = certificate(t, now, now.Add(90*day))
	for file, text := range map[string]string{certFile: cert, keyFile: key} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.server.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.client = &http.Client{Timeout: patience, Transport: trusting(t, cert)}
	s.minutes(1, nil)
	s.fires()
}
