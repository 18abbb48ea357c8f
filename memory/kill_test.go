package memory_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// killCapacity is more than a child can use before it is killed, so that it is busy until then.
const killCapacity = 1_000_000

// killLimits returns one limit of each kind, whose units do not return during the test.
func killLimits() *weir.Definitions {
	const century = 100 * 365 * 24 * time.Hour
	every := "month"
	if soon := time.Now().UTC().Add(24 * time.Hour); soon.Day() == 1 {
		every = "week" // the month is about to end
		if soon.Weekday() == time.Monday {
			every = "day"
		}
	}
	return &weir.Definitions{System: []weir.Limit{
		{Name: "bucket", Capacity: killCapacity, RefillAmount: 1, RefillPeriod: century},
		{Name: "window", Kind: weir.Window, Capacity: killCapacity, Window: 24 * time.Hour},
		{Name: "slots", Kind: weir.Concurrency, Capacity: killCapacity, Timeout: 24 * time.Hour},
		{Name: "budget", Kind: weir.Budget, Capacity: killCapacity, Every: every},
	}}
}

func killRequest(entity string, n int64) *weir.Request {
	return &weir.Request{Entity: entity, Resource: "r",
		Costs: weir.Costs{"bucket": n, "window": n, "slots": n, "budget": n}}
}

const killWorkers = 4

// TestKillChild is the process that TestKill kills, not a test of its own. Each worker logs what it
// did after it did it, in lines that are written by one write each.
func TestKillChild(t *testing.T) {
	file, entity := os.Getenv("WEIR_KILL_FILE"), os.Getenv("WEIR_KILL_ENTITY")
	if file == "" {
		t.Skip("is started by TestKill")
	}
	l := openKilled(t, file)
	fmt.Println("ready")
	var all sync.WaitGroup
	for w := range killWorkers {
		all.Go(func() {
			for i := 0; ; i++ {
				lease, err := l.Reserve(t.Context(), killRequest(entity, 1))
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Printf("reserved %d %s\n", w, lease.ID)
				if i%3 == 0 {
					if _, err := lease.Cancel(t.Context()); err != nil {
						t.Error(err)
						return
					}
					fmt.Printf("cancelled %d %s\n", w, lease.ID)
				}
			}
		})
	}
	all.Wait()
}

func openKilled(t *testing.T, file string) *limiter.Limiter {
	t.Helper()
	store, err := memory.OpenSnapshot(file, &memory.SnapshotOptions{
		Definitions: killLimits(), Every: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// killLog is the log of a child that was killed.
type killLog struct {
	workers             [killWorkers][]weir.LeaseID // IDs reserved, in order
	cancelled           map[weir.LeaseID]bool
	reserved, cancels   int
	known, live, beyond int // numbers of the reserved IDs after the restart
}

// A process that is killed at any time loses what happened after its last snapshot, charges and
// leases together, and nothing else. The next process admits what the limits allow on top of the
// snapshot.
func TestKill(t *testing.T) {
	kills := soak.Amount(8, 200)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, %d kills", seed, kills)
	file := filepath.Join(t.TempDir(), "snapshot")
	var sum killLog
	worst := 0
	for i := range kills {
		if i%10 == 0 {
			file = filepath.Join(t.TempDir(), "snapshot")
		}
		entity := fmt.Sprintf("entity-%d", i)
		log := killOnce(t, file, entity, time.Duration(random.Int64N(int64(120*time.Millisecond))))
		over := verifyKilled(t, file, entity, log)
		worst = max(worst, over)
		sum.reserved += log.reserved
		sum.cancels += log.cancels
		sum.known += log.known
		sum.live += log.live
		sum.beyond += over
	}
	t.Logf("%d reserved, %d cancelled; found again: %d leases, %d of them live; lost: %d",
		sum.reserved, sum.cancels, sum.known, sum.live, sum.reserved-sum.known)
	t.Logf("admitted beyond the definition: %d units in all, %d at most after one kill; "+
		"in the lost intervals %d had been admitted", sum.beyond, worst, sum.reserved-sum.known)
	if sum.reserved == 0 || sum.known == 0 {
		t.Error("the children did nothing that was kept")
	}
}

// killOnce runs a busy child and kills it after some time.
func killOnce(t *testing.T, file, entity string, after time.Duration) *killLog {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillChild$")
	child.Env = append(os.Environ(), "WEIR_KILL_FILE="+file, "WEIR_KILL_ENTITY="+entity)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	log := &killLog{cancelled: map[weir.LeaseID]bool{}}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" {
			time.AfterFunc(after, func() { _ = child.Process.Signal(syscall.SIGKILL) })
			continue
		}
		log.read(t, lines.Text())
	}
	if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child ended with %v, want killed", err)
	}
	return log
}

func (log *killLog) read(t *testing.T, line string) {
	var what, id string
	var worker int
	if n, err := fmt.Sscanf(line, "%s %d %s", &what, &worker, &id); n != 3 || err != nil {
		t.Fatalf("the child said %q", line)
	}
	lease, err := weir.ParseLeaseID(id)
	if err != nil {
		t.Fatal(err)
	}
	if what == "cancelled" {
		log.cancels++
		log.cancelled[lease] = true
		return
	}
	log.reserved++
	log.workers[worker] = append(log.workers[worker], lease)
}

// verifyKilled opens the file that the child left, and returns the number of units beyond the
// capacity that will have been admitted when the limits are full.
func verifyKilled(t *testing.T, file, entity string, log *killLog) int {
	t.Helper()
	l := openKilled(t, file)
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	for w, leases := range log.workers {
		lost := -1
		for i, id := range leases {
			_, err := l.Extend(t.Context(), id)
			switch {
			case errors.Is(err, weir.UnknownLease):
				if lost < 0 {
					lost = i
				}
				continue
			case err == nil:
				log.live++
			case !errors.Is(err, weir.Ended):
				t.Fatal(err)
			case !log.cancelled[id]: // killed before it could log that
				log.cancels++
			}
			log.known++
			if lost >= 0 {
				t.Errorf("worker %d: lease %d was lost and the later %d was not", w, lost, i)
			}
		}
	}
	statuses, err := l.Status(t.Context(), entity, "r")
	if err != nil {
		t.Fatal(err)
	}
	left := statuses[0].Available
	for _, s := range statuses {
		if s.Available != left {
			t.Errorf("%s has %d left and %s %d: the snapshot is not of one instant",
				s.Limit, s.Available, statuses[0].Limit, left)
		}
	}
	inUse := int(killCapacity - left)
	// Each worker may have been killed between a call and its log line.
	if inUse < log.live || inUse > log.live+killWorkers {
		t.Errorf("%d units in use, want those of the %d live leases", inUse, log.live)
	}
	checkKilledUsage(t, l, entity, statuses, int64(inUse))
	if _, err := l.Reserve(t.Context(), killRequest(entity, left)); err != nil {
		t.Errorf("the %d units that are left: %v", left, err)
	}
	if _, err := l.Reserve(t.Context(), killRequest(entity, 1)); !isDenied(err) {
		t.Errorf("one unit more than there is: got %v, want a denial", err)
	}
	over := log.reserved - log.cancels - inUse
	if lost := log.reserved - log.known; over > lost {
		t.Errorf("admitted %d beyond the definition, but only %d were lost", over, lost)
	}
	return max(over, 0)
}

// checkKilledUsage checks that what the snapshot has as used is what it has in use: units return
// only by cancels.
func checkKilledUsage(
	t *testing.T, l *limiter.Limiter, entity string, statuses []weir.LimitStatus, inUse int64,
) {
	t.Helper()
	page, err := l.Usage(t.Context(), &weir.UsageQuery{Entity: entity, Window: weir.Monthly})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statuses {
		var used int64
		for i := range page.Usage {
			used += page.Usage[i].Units[s.Limit]
		}
		if used != inUse {
			t.Errorf("%s has a usage of %d, want the %d units in use", s.Limit, used, inUse)
		}
	}
}

func isDenied(err error) bool {
	_, ok := errors.AsType[*weir.DeniedError](err)
	return ok
}
