package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir/memory"
)

// TestStoreFaults: each failure is counted, the first is logged at once and others once a minute, with
// how many there were.
func TestStoreFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &logBuffer{}
		f := NewStoreFaults(newTestLogger(log))
		if f.count() != 0 || f.last() != 0 {
			t.Errorf("before: got %v at %v, want none", f.count(), f.last())
		}
		for range 150 { // one a second
			f.Note(errors.New("weir: the disk is full"))
			time.Sleep(time.Second)
		}
		want := []string{"times=1 total=1", "times=60 total=61", "times=60 total=121"}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != len(want) {
			t.Fatalf("got %d lines, want %d: %s", len(lines), len(want), log)
		}
		for i, line := range lines {
			if !strings.Contains(line, want[i]) || !strings.Contains(line, `level=ERROR msg="the store failed" error="the disk is full"`) {
				t.Errorf("got %s, want %s", line, want[i])
			}
		}
		at := float64(time.Now().Add(-time.Second).UnixMilli()) / 1000
		if f.count() != 150 || f.last() != at {
			t.Errorf("got %v at %v, want 150 at %v", f.count(), f.last(), at)
		}
	})
	var none *StoreFaults
	if none.count() != 0 || none.last() != 0 {
		t.Error("none has some")
	}
	NewStoreFaults(nil).Note(errors.New("to nobody"))
}

// TestSnapshotFails: a snapshot that cannot be written is in the log and in the metrics while the
// server runs, and one that can be is not.
func TestSnapshotFails(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	faults := NewStoreFaults(newTestLogger(log))
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "snapshot")
	store, err := memory.OpenSnapshot(file, &memory.SnapshotOptions{
		Every: 10 * time.Millisecond, OnError: faults.Note,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := startOver(t, store, &Options{StoreFaults: faults})
	w.ask(t, "/v1/reserve", askRPM, "")
	eventually(t, "a snapshot", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	const total, last = "weir_store_errors_total", "weir_store_last_error_timestamp_seconds"
	if figures := w.figures(t, ""); figures[total] != 0 || figures[last] != 0 || log.String() != "" {
		t.Errorf("before: got %v, %v and %s, want no failure", figures[total], figures[last], log)
	}
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	w.ask(t, "/v1/reserve", askRPM, "")
	eventually(t, "it is counted", func() bool { return w.figures(t, "")[total] > 1 })
	if said := log.String(); strings.Count(said, "the store failed") != 1 || !strings.Contains(said, "write snapshot") {
		t.Errorf("want one line: %s", said)
	}
	if w.figures(t, "")[last] == 0 {
		t.Error("the metrics do not say when")
	}
	if err := os.Rename(dir+".gone", dir); err != nil { // or closing fails
		t.Fatal(err)
	}
}
