package memory_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

var (
	_ driver.Store          = (*memory.SnapshotStore)(nil)
	_ driver.ConfigReader   = (*memory.SnapshotStore)(nil)
	_ driver.ConfigWriter   = (*memory.SnapshotStore)(nil)
	_ driver.SubjectLister  = (*memory.SnapshotStore)(nil)
	_ driver.LeaseRecoverer = (*memory.SnapshotStore)(nil)
	_ driver.Snapshotter    = (*memory.SnapshotStore)(nil)
)

// snapshotWorld opens a file under the definitions.
func snapshotWorld(t *testing.T, file string, limits ...weir.Limit) *world {
	t.Helper()
	store, err := memory.OpenSnapshot(file, &memory.SnapshotOptions{
		Definitions: &weir.Definitions{System: limits}, Every: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, store: store, now: start}
}

// restart closes the store and opens its file again.
func (w *world) restart(t *testing.T, file string, limits ...weir.Limit) {
	t.Helper()
	w.close()
	w.store = snapshotWorld(t, file, limits...).store
}

func (w *world) close() {
	w.t.Helper()
	if err := w.store.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) recover(id weir.LeaseID) *driver.LeaseRecord {
	w.t.Helper()
	r, err := w.store.(driver.LeaseRecoverer).RecoverLease(context.Background(), w.now, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestSnapshotRestoresTheState(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	limits := append(four(), named("e", shadow(window(1, 2*time.Minute))))
	w := snapshotWorld(t, file, limits...)
	costs := each(4)
	costs["e"] = 3
	l := w.at(0).reserve(charge(costs))
	w.at(500).settle(l, weir.VerbAdjust, weir.Costs{"b": 7})
	w.at(1_000)
	before := w.status()
	w.restart(t, file, limits...)
	if got := w.status(); !reflect.DeepEqual(got, before) {
		t.Errorf("status after a restart: got %+v, want %+v", got, before)
	}
	r := w.recover(l.id)
	if r == nil || r.State != driver.LeaseLive || r.Seq != 1 || !r.SeqAt.Equal(start.Add(500*time.Millisecond)) ||
		!r.At.Equal(start) || !r.Expires.Equal(start.Add(time.Hour)) || r.Charges != 1 {
		t.Fatalf("lease: got %+v", r)
	}
	if !reflect.DeepEqual(r.Limits, l.limits) {
		t.Errorf("answer: got %+v, want %+v", r.Limits, l.limits)
	}
	l.holdings = r.Holdings
	w.at(60_000).leftOf("b", 10)
	w.at(60_000).leftOf("e", -2)
	w.cancel(l)
	w.at(60_500).availableIs(10, 10, 10, 10, 1)
	w.close()
}

func (w *world) leftOf(limit string, want int64) {
	w.t.Helper()
	for _, s := range w.status() {
		if s.Limit == limit && s.Available != want {
			w.t.Errorf("%s: got %d available, want %d", limit, s.Available, want)
		}
	}
}

func TestSnapshotKeepsABucketsDefinition(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	w := snapshotWorld(t, file, bucket(10, 10, time.Minute))
	w.at(0).take(10)
	w.restart(t, file, bucket(100, 100, time.Minute))
	w.at(6_000).left(1) // refilled under the definition of that time
	w.close()
}

func TestSnapshotReserveOfAKnownLease(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	limits := []weir.Limit{window(10, time.Hour)}
	w := snapshotWorld(t, file, limits...)
	live, done := w.at(0).reservation(charge(x(1))), w.reservation(charge(x(1)))
	var plans []*driver.Plan
	for _, r := range []*conformance.Reservation{live, done} {
		p, err := r.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
		if out, err := memory.Take(w.store, w.now, p); err != nil || out.Denied || out.Replay {
			t.Fatalf("got %+v, %v; want an admission", out, err)
		}
	}
	w.complete(&lease{id: done.ID, holdings: w.recover(done.ID).Holdings}, 3)
	w.restart(t, file, named("y", bucket(1, 1, time.Minute))) // a replay is not judged by limits
	if out, err := memory.Take(w.store, w.now, plans[0]); err != nil || !out.Replay || !out.At.Equal(start) {
		t.Errorf("same content: got %+v, %v; want a replay", out, err)
	}
	other := *plans[0]
	other.Fingerprint++
	if _, err := memory.Take(w.store, w.now, &other); !errors.Is(err, weir.Conflict) {
		t.Errorf("other content: got %v, want %v", err, weir.Conflict)
	}
	if _, err := memory.Take(w.store, w.now, plans[1]); !errors.Is(err, weir.Ended) {
		t.Errorf("completed: got %v, want %v", err, weir.Ended)
	}
	w.at(3_600_000)
	if _, err := memory.Take(w.store, w.now, plans[0]); !errors.Is(err, weir.Ended) {
		t.Errorf("expired: got %v, want %v", err, weir.Ended)
	}
	if r := w.recover(live.ID); r.State != driver.LeaseExpired || !r.EndedAt.Equal(w.now) || r.Holdings != nil {
		t.Errorf("expired: got %+v", r)
	}
	w.close()
}

func TestSnapshotLeaseLife(t *testing.T) {
	t.Parallel()
	w := snapshotWorld(t, filepath.Join(t.TempDir(), "state"), concurrency(5, time.Minute))
	state := func(l *lease, want driver.LeaseState) *driver.LeaseRecord {
		t.Helper()
		r := w.recover(l.id)
		if r == nil && want != "" || r != nil && r.State != want {
			t.Fatalf("at %v: got %+v, want state %q", w.now.Sub(start), r, want)
		}
		return r
	}
	done, gone, long := w.at(0).take(1), w.take(1), w.take(1)
	w.at(1_000).complete(done, 0)
	w.settle(gone, weir.VerbCancel, nil)
	w.at(60_000 - 1).extend(long)
	if r := state(long, driver.LeaseLive); !r.Expires.Equal(w.now.Add(time.Hour)) {
		t.Errorf("extended: got %+v", r)
	}
	if r := state(done, driver.LeaseCompleted); !r.EndedAt.Equal(start.Add(time.Second)) {
		t.Errorf("completed: got %+v", r)
	}
	state(gone, driver.LeaseCancelled)
	w.at(601_000)
	state(gone, driver.LeaseCancelled)
	w.at(601_001) // ten minutes after its end
	state(gone, "")
	state(done, "")
	w.at(3_600_000)
	state(long, driver.LeaseLive)
	w.at(3_659_999)
	state(long, driver.LeaseExpired)
	w.at(3_659_999 + 600_001)
	state(long, "")
	w.close()
}

func TestSnapshotDeniedLeavesNoLease(t *testing.T) {
	t.Parallel()
	w := snapshotWorld(t, filepath.Join(t.TempDir(), "state"), window(1, time.Minute))
	w.at(0).take(1)
	r := w.reservation(charge(x(1)))
	if out, err := w.try(r); err != nil || !out.Denied {
		t.Fatalf("got %+v, %v; want a denial", out, err)
	}
	if got := w.recover(r.ID); got != nil {
		t.Errorf("got %+v, want nothing", got)
	}
	w.at(60_000)
	if out, err := w.try(r); err != nil || out.Denied || out.Replay {
		t.Errorf("got %+v, %v; want an admission", out, err)
	}
	w.close()
}

func TestSnapshotConfigAndResources(t *testing.T) {
	t.Parallel()
	w := snapshotWorld(t, filepath.Join(t.TempDir(), "state"), window(1, time.Minute))
	w.at(0).take(1)
	w.configure(window(3, time.Minute))
	w.left(2)
	lister := w.store.(driver.SubjectLister)
	got, err := lister.Resources(context.Background(), w.now, subjectEntity)
	if err != nil || len(got) != 1 || got[0] != subjectResource {
		t.Errorf("resources: got %v, %v", got, err)
	}
	if !reflect.DeepEqual(w.store.Traits(), newWorld(t).store.Traits()) {
		t.Error("the traits differ from those of a store without a file")
	}
	w.close()
}

func TestSnapshotIsWrittenPeriodically(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.OpenSnapshot(file, &memory.SnapshotOptions{
			Definitions: &weir.Definitions{System: []weir.Limit{window(10, time.Hour)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, store: store, now: start}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("nothing has changed: got %v, want no file", err)
		}
		w.take(4)
		time.Sleep(time.Second)
		synctest.Wait()
		first, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// Simulate a crash now by opening a copy of the file.
		crashed := filepath.Join(t.TempDir(), "crashed")
		if err := os.WriteFile(crashed, first, 0o600); err != nil {
			t.Fatal(err)
		}
		w.take(5)
		w.close()
		after := snapshotWorld(t, crashed, window(10, time.Hour))
		after.left(6)
		after.close()
	})
}

// TestSnapshotStats checks that a snapshot that was written, or not needed, moves Complete, and that
// one that failed does not.
func TestSnapshotStats(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.OpenSnapshot(filepath.Join(folder, "file"), &memory.SnapshotOptions{
			Definitions: &weir.Definitions{System: []weir.Limit{window(10, time.Hour)}},
			Every:       2 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		w, opened := &world{t: t, store: store, now: start}, time.Now()
		want := driver.SnapshotStats{Interval: 2 * time.Second}
		check := func(what string) {
			t.Helper()
			if got := store.SnapshotStats(); got != want {
				t.Errorf("%s: got %+v, want %+v", what, got, want)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		time.Sleep(time.Second) // between two looks from now on
		check("before the first look")
		want.Complete = opened.Add(2 * time.Second)
		check("nothing had changed")
		want.Complete = opened.Add(4 * time.Second)
		w.take(1)
		check("nothing had changed yet")
		want.Complete = opened.Add(6 * time.Second)
		if err := os.Rename(folder, folder+".gone"); err != nil {
			t.Fatal(err)
		}
		w.take(1)
		check("it was written")
		want.Failures = 1
		check("it could not be written")
		want.Failures = 2
		check("again not, without a further change")
		if err := os.Rename(folder+".gone", folder); err != nil {
			t.Fatal(err)
		}
		want.Failures = 3
		check("the folder is back")
		want.Complete = opened.Add(14 * time.Second)
		check("it was written at last")
		w.close()
	})
}

func TestSnapshotFailureIsReported(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "gone")
	open := func(t *testing.T, told *error) *world {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		store, err := memory.OpenSnapshot(filepath.Join(folder, "state"), &memory.SnapshotOptions{
			Definitions: &weir.Definitions{System: []weir.Limit{window(10, time.Hour)}},
			OnError:     func(err error) { *told = err },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		return &world{t: t, store: store, now: start}
	}
	synctest.Test(t, func(t *testing.T) {
		var told error
		w := open(t, &told)
		w.take(1)
		time.Sleep(time.Second)
		synctest.Wait()
		if !errors.Is(told, os.ErrNotExist) {
			t.Errorf("told: got %v, want %v", told, os.ErrNotExist)
		}
		if err := w.store.Close(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("close: got %v, want %v", err, os.ErrNotExist)
		}
		if err := w.store.Close(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("close again: got %v, want the same", err)
		}
	})
}

func TestSnapshotClosed(t *testing.T) {
	t.Parallel()
	w := snapshotWorld(t, filepath.Join(t.TempDir(), "state"), window(10, time.Hour))
	l := w.take(1)
	s := w.settlement(l, weir.VerbCancel, nil)
	w.close()
	if _, err := w.try(w.reservation(charge(x(1)))); !errors.Is(err, weir.Unavailable) {
		t.Errorf("reserve: got %v, want %v", err, weir.Unavailable)
	}
	if _, err := memory.Settle(w.store, w.now, s); !errors.Is(err, weir.Unavailable) {
		t.Errorf("settle: got %v, want %v", err, weir.Unavailable)
	}
}

func TestSnapshotReadsCreateNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	w := snapshotWorld(t, filepath.Join(folder, "state"), window(10, time.Hour))
	w.left(10)
	w.close()
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left behind: got %v, %v; want nothing", left, err)
	}
}

func TestSnapshotIsOpenOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	w := snapshotWorld(t, file, window(10, time.Hour))
	_, err := memory.OpenSnapshot(file, nil)
	if !errors.Is(err, weir.Unavailable) || !strings.Contains(err.Error(), "another store has it open") ||
		!strings.Contains(err.Error(), file) {
		t.Errorf("second: got %v", err)
	}
	w.restart(t, file, window(10, time.Hour))
	w.close()
}

func TestOpenSnapshotRefusesMistakes(t *testing.T) {
	t.Parallel()
	_, err := memory.OpenSnapshot("", &memory.SnapshotOptions{
		Definitions: &weir.Definitions{System: []weir.Limit{{Name: "x"}}}, Every: time.Microsecond,
	})
	for _, want := range []string{"snapshot", "Every", "system.limits.x.capacity"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s named", err, want)
		}
	}
	_, err = memory.OpenSnapshot(filepath.Join(t.TempDir(), "no", "state"), nil)
	if !errors.Is(err, os.ErrNotExist) || !errors.Is(err, weir.Unavailable) {
		t.Errorf("no such folder: got %v", err)
	}
}

// A file has one lock, by whatever name it is opened.
func TestSnapshotIsLockedThroughLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "state"), filepath.Join(dir, "link")
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := memory.OpenSnapshot(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil { // as the first snapshot does
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "sub", "folder")); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{link, filepath.Join(dir, "sub", "folder", "state")} {
		if _, err := memory.OpenSnapshot(name, nil); !errors.Is(err, weir.Unavailable) {
			t.Errorf("%s: got %v, want unavailable, for it is in use", name, err)
		}
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}
