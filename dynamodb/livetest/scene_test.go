package livetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// sceneCalls is the number of calls of a scene, and sceneCapacity the capacity of its limit, which
// regains nothing.
const (
	sceneCalls    = 600
	sceneCapacity = 60_000
)

// scene is a number of calls, one after another, each of whose requests goes to a server chosen at
// random.
type scene struct {
	name           string
	reserved, used int64 // units of each call
	twice          bool  // each reserve is repeated, with the same lease ID
	servers        int
	leases         string // the store's option
}

// sceneFigures are the results of a scene.
type sceneFigures struct {
	admitted, denied, replays int
	settled, unknown          int // settlements that were done, and whose lease was unknown
	consumed                  int64
	charged                   int64 // of the capacity at the end
}

// TestScene checks that any number of servers on one table admits and charges what one server does,
// unless each keeps its leases to itself. The first column of its table has the calls: what each
// reserves and then uses. It is not parallel to the other tests, as [TestKilledServers].
func TestScene(t *testing.T) {
	seed := soak.Seed(t)
	scenes := []scene{
		{name: "reserve 1000, use 100", reserved: 1000, used: 100},
		{name: "reserve 100, use 500", reserved: 100, used: 500},
		{name: "reserve 1000 twice", reserved: 1000, used: 1000, twice: true},
	}
	wants := []sceneFigures{
		{admitted: 591, denied: 9, settled: 591, consumed: 59_100, charged: 59_100},
		{admitted: 120, denied: 480, settled: 120, consumed: 60_000, charged: 60_000},
		{admitted: 60, denied: 540, replays: 60, settled: 60, consumed: 60_000, charged: 60_000},
	}
	var rows []*sceneRow
	for i, s := range scenes {
		for _, servers := range []int{2, -1, -2, -3} {
			s.servers, s.leases = servers, "process"
			if servers < 0 {
				s.servers, s.leases = -servers, "table"
			}
			rows = append(rows, &sceneRow{scene: s, want: wants[i]})
		}
	}
	t.Cleanup(func() { t.Log(sceneTable(rows)) })
	for i, r := range rows {
		t.Run(fmt.Sprintf("%s, leases=%s, %d servers", r.name, r.leases, r.servers), func(t *testing.T) {
			t.Parallel()
			r.play(t, rand.New(rand.NewPCG(seed, uint64(i))))
			switch got := r.sceneFigures; {
			case r.leases == "table" && got != r.want:
				t.Errorf("got %+v, want %+v", got, r.want)
			case r.leases == "process" && got == r.want:
				t.Errorf("nothing is wrong with leases that each server keeps to itself: %+v", got)
			}
		})
	}
}

// sceneRow is a scene with its figures, and those of one server.
type sceneRow struct {
	scene
	sceneFigures

	want sceneFigures
}

// sceneTable returns the figures of scenes. The last two columns are parts of the capacity.
func sceneTable(rows []*sceneRow) string {
	var b strings.Builder
	b.WriteString("\ncalls                  leases   servers admitted denied replays settled unknown   used charged\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-22s %-8s %7d %8d %6d %7d %7d %7d %4d %% %5d %%\n",
			r.name, r.leases, r.servers, r.admitted, r.denied, r.replays, r.settled, r.unknown,
			r.consumed*100/sceneCapacity, r.charged*100/sceneCapacity)
	}
	return b.String()
}

// open opens a limiter for each server on a new table.
func (s *scene) open(t *testing.T) []*limiter.Limiter {
	t.Helper()
	local := testkit.DynamoDB(t)
	config := local.Config()
	options := dynamodb.Options{
		Config: &config, WriteTimeout: childTimeout, ProcessLeases: s.leases == "process",
	}
	table := &dynamodb.Table{Name: local.Table(t, nil), NoStream: true, Options: &options}
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all []*limiter.Limiter
	for range s.servers {
		store, err := dynamodb.Open(t.Context(), table.Name, &options)
		if err != nil {
			t.Fatal(err)
		}
		lim, err := limiter.New(store, &limiter.Options{StoreTimeout: childTimeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := lim.Close(); err != nil {
				t.Error(err)
			}
		})
		all = append(all, lim)
	}
	const century = 100 * 365 * 24 * time.Hour
	err := all[0].SetLimits(t.Context(), weir.Subject{}, []weir.Limit{
		{Name: scarceLimit, Capacity: sceneCapacity, RefillAmount: 1, RefillPeriod: century},
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// play makes the calls.
func (s *sceneRow) play(t *testing.T, random *rand.Rand) {
	t.Helper()
	servers, f := s.open(t), &s.sceneFigures
	any := func() *limiter.Limiter { return servers[random.IntN(len(servers))] }
	var ids idMaker
	for range sceneCalls {
		request := &weir.Request{
			Entity: team, Resource: "gpt-4o", Costs: weir.Costs{scarceLimit: s.reserved},
		}
		if s.twice { // otherwise the limiter makes the ID
			request.LeaseID = ids.next()
		}
		lease, err := any().Reserve(t.Context(), request)
		if _, denied := errors.AsType[*weir.DeniedError](err); denied {
			f.denied++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		f.admitted++
		if s.twice {
			again, err := any().Reserve(t.Context(), request)
			if err == nil && again.Replay {
				f.replays++
			}
		}
		f.consumed += s.used
		_, err = any().Complete(t.Context(), lease.ID, []weir.Costs{{scarceLimit: s.used}})
		switch {
		case errors.Is(err, weir.UnknownLease):
			f.unknown++
		case err != nil:
			t.Fatal(err)
		default:
			f.settled++
		}
	}
	status, err := any().Status(t.Context(), team, "gpt-4o")
	if err != nil {
		t.Fatal(err)
	}
	f.charged = sceneCapacity - status[0].Available
}
