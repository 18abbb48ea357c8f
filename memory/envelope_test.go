package memory

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// smallSnapshot returns a file with something of everything in it.
func smallSnapshot(t testing.TB) []byte {
	t.Helper()
	s := busyStore(t)
	body, err := s.snapshot(beginEnvelope(nil))
	if err != nil {
		t.Fatal(err)
	}
	return sealEnvelope(body)
}

// busyStore returns a store without a file that has a state of each kind, and a live and an ended
// lease.
func busyStore(t testing.TB) *SnapshotStore {
	t.Helper()
	s := bareStore(t)
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	limits := sweepLimits(t)
	for i, entity := range []string{"live", "ended"} {
		out, err := s.store.reserveTakes(now, takesOf(entity, limits))
		if err != nil {
			t.Fatal(err)
		}
		lease := driver.LeaseRecord{
			ID: weir.LeaseID{15: byte(i)}, State: driver.LeaseLive, Fingerprint: 7, At: out.At,
			Expires: out.At.Add(time.Hour), Charges: 1, Holdings: out.Holdings, Limits: out.Limits,
		}
		s.records.add(now.UnixMilli(), &leaseRecord{LeaseRecord: lease, memory: 600_000}, 0)
		if entity == "ended" {
			st := &Settlement{ID: lease.ID, Verb: weir.VerbCancel, Memory: time.Minute}
			s.records.update(now.UnixMilli(), st.update(), &driver.Outcome{At: out.At})
		}
	}
	s.records.horizon = now.UnixMilli()
	return s
}

func bareStore(t testing.TB) *SnapshotStore {
	t.Helper()
	store, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &SnapshotStore{store: store, records: newRecords()}
}

// snapshot appends a snapshot of the current state.
func (s *SnapshotStore) snapshot(buffer []byte) ([]byte, error) {
	s.callLock.Lock()
	f := s.freeze(false)
	s.callLock.Unlock()
	return s.encode(buffer, f)
}

func openBytes(t *testing.T, data []byte) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSnapshot(file, nil)
	if err != nil {
		if !errors.Is(err, weir.Invalid) || !strings.Contains(err.Error(), file) {
			t.Errorf("got %v, want the file named", err)
		}
		if !strings.Contains(err.Error(), "; put a copy of an earlier snapshot in its place, or move it away") {
			t.Errorf("got %v, want what to do about it", err)
		}
		if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
		return err
	}
	return s.Close()
}

func TestOpenSnapshotRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	whole := smallSnapshot(t)
	newer := slices.Clone(whole)
	binary.LittleEndian.PutUint32(newer[len(snapshotMagic):], snapshotVersion+1)
	malformed := sealEnvelope(append(beginEnvelope(nil), 1, 2, 3))
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "is truncated"},
		{"only the beginning", whole[:5], "is truncated"},
		{"half", whole[:len(whole)/2], "is truncated"},
		{"foreign", []byte("{\"limits\": []}"), "is not a snapshot"},
		{"newer", newer, "has format version 4"},
		{"altered", append(slices.Clone(whole[:len(whole)-1]), whole[len(whole)-1]^1), "is damaged"},
		{"longer", append(slices.Clone(whole), 0), "is damaged"},
		{"malformed", malformed, "is malformed"},
		{"whole", whole, ""},
	} {
		err := openBytes(t, tc.data)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestSnapshotEveryAlteredByteIsNoticed(t *testing.T) {
	t.Parallel()
	whole := smallSnapshot(t)
	for i := range whole {
		for _, flip := range []byte{1, 0x80, 0xff} {
			altered := slices.Clone(whole)
			altered[i] ^= flip
			if body, _, err := openEnvelope(altered); err == nil {
				t.Fatalf("byte %d altered: got a body of %d bytes, want an error", i, len(body))
			}
		}
		if _, _, err := openEnvelope(whole[:i]); err == nil || !strings.Contains(err.Error(), "truncated") {
			t.Fatalf("first %d bytes: got %v, want truncated", i, err)
		}
	}
}

// TestDecodeRefusesEveryTruncatedBody truncates bodies without the checksum, which would refuse
// them all.
func TestDecodeRefusesEveryTruncatedBody(t *testing.T) {
	t.Parallel()
	whole := smallSnapshot(t)
	body, _, err := openEnvelope(whole)
	if err != nil {
		t.Fatal(err)
	}
	for i := range body {
		if err := bareStore(t).decode(body[:i], snapshotVersion); err == nil {
			t.Fatalf("first %d bytes: got no error", i)
		}
	}
	if err := bareStore(t).decode(body, snapshotVersion); err != nil {
		t.Errorf("whole: got %v", err)
	}
}

func TestReplaceFileLeavesNoOtherFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "state")
	if err := os.MkdirAll(filepath.Join(file, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(file, []byte("x")); err == nil {
		t.Error("a folder is in the way: got no error")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left behind: got %v, %v", left, err)
	}
}
