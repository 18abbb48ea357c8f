package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// SnapshotOptions tune a [SnapshotStore]. A nil *SnapshotOptions means all defaults.
type SnapshotOptions struct {
	// Definitions are the limits and entities configured when the store is opened. They are not
	// written to the file, and are in force instead of those that it has. Default: those in the
	// file, which has what single changes and applies of a limits file have made.
	Definitions *weir.Definitions
	// UsageDays, UsageEntries and AuditEvents are as in [Options]. Usage and audit are in the file.
	UsageDays, UsageEntries, AuditEvents int
	// Every is the time between snapshots while the state changes. It is longer if the state is so
	// large that copying it would take more than a tenth of the time. Calls go on during a
	// snapshot; all of them are stopped together for well under a millisecond, whatever the number
	// of leases. Default: one second.
	Every time.Duration
	// OnError is called with the error if a snapshot cannot be written. The store tries again at
	// the time of the next snapshot. It is called on the store's goroutine, for which Close waits,
	// so it must not call Close. Default: none; Close returns the error if the last snapshot cannot
	// be written.
	OnError func(error)
	// ReadOnly reads the file once, even if another store has it open, and creates and writes
	// nothing. The file must exist. Calls that would change something return an error with code
	// [weir.Unsupported]. Default: false.
	ReadOnly bool
}

// SnapshotStore is a [Store] that also writes its state and its leases to a file from time to time,
// and when it is closed. The next store that opens the file continues from there. What happened
// after the last snapshot is lost completely, charges and leases together, so that nothing is
// charged twice.
//
// A snapshot shows one instant. Calls go on while it is copied and written: a call may wait while a
// chunk of neighbouring state is copied, or first preserve a copy of state that it changes.
type SnapshotStore struct {
	store   *Store
	records leaseRecords
	file    string
	lock    *fileLock
	onError func(error)
	// recovered reports whether the store was opened with a snapshot.
	recovered bool
	readOnly  bool
	// ownLimits reports whether the file had a configuration.
	ownLimits bool

	// callLock is held for reading by every call that may change something, and for writing while
	// the state is frozen. So no call is halfway at the instant of a snapshot.
	callLock sync.RWMutex
	closed   bool
	changed  atomic.Bool
	// open reports that the file has a snapshot that this process has written and that does not say
	// that the process has ended.
	open   bool
	buffer []byte
	// stats are those of [SnapshotStore.SnapshotStats]; they are replaced, never changed.
	stats atomic.Pointer[driver.SnapshotStats]

	stop, stopped chan struct{}
	closing       sync.Once
	closeErr      error
}

// OpenSnapshot opens a store with the last snapshot in file, or an empty store if there is no such
// file. The folder must exist. The error is a [*weir.Error] that names the file if the file is
// truncated, altered or not a snapshot, or if another store has it open. While a store has the file
// open, there is a lock file beside it with the suffix .lock.
func OpenSnapshot(file string, o *SnapshotOptions) (*SnapshotStore, error) {
	var options SnapshotOptions
	if o != nil {
		options = *o
	}
	if options.Every == 0 {
		options.Every = time.Second
	}
	store, err := Open(&Options{
		Definitions: options.Definitions, UsageDays: options.UsageDays,
		UsageEntries: options.UsageEntries, AuditEvents: options.AuditEvents,
	})
	if options.Every < time.Millisecond {
		err = errors.Join(err, &weir.Error{Code: weir.Invalid, Field: "Every",
			Value: options.Every.String(), Reason: "must be at least a millisecond"})
	}
	if file == "" {
		err = errors.Join(err, badFile(file, "must be the name of a file", nil))
	}
	if err != nil {
		return nil, err
	}
	s := &SnapshotStore{
		store: store, records: newRecords(), onError: options.OnError,
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.stats.Store(&driver.SnapshotStats{Interval: options.Every})
	if s.file, err = resolveLinks(file); err != nil {
		return nil, badFile(file, "cannot be found", err)
	}
	if options.ReadOnly {
		if err := s.readOnce(); err != nil {
			return nil, err
		}
		return s, nil
	}
	if s.lock, err = lockFile(s.file + ".lock"); err != nil {
		return nil, unavailable(file, err)
	}
	if err := s.readSnapshot(); err != nil {
		return nil, errors.Join(err, s.lock.release())
	}
	go s.writeLoop(options.Every)
	return s, nil
}

// readOnce reads a snapshot that another store may be writing. A snapshot is replaced as a whole by
// a rename, so what is read is one of them.
func (s *SnapshotStore) readOnce() error {
	s.readOnly = true
	close(s.stopped)
	if err := s.readSnapshot(); err != nil {
		return err
	}
	if !s.recovered {
		return badFile(s.file, "does not exist", nil)
	}
	return nil
}

// resolveLinks returns the path of a file without symbolic links, so that all names of a file have
// the same lock.
func resolveLinks(file string) (string, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(file); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		return file, nil //nolint:nilerr // opening its lock says so, better
	}
	return filepath.Join(folder, filepath.Base(file)), nil
}

// readSnapshot loads the snapshot in the file, if there is one.
func (s *SnapshotStore) readSnapshot() error {
	// Check first, because reading a pipe would block.
	if info, err := os.Stat(s.file); err == nil && !info.Mode().IsRegular() {
		return badFile(s.file, "is not a regular file", nil)
	}
	data, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unavailable(s.file, err)
	}
	body, version, err := openEnvelope(data)
	if err == nil {
		err = s.decode(body, version)
	}
	if err != nil {
		return badFile(s.file, err.Error()+snapshotAdvice, nil)
	}
	s.recovered = true
	return nil
}

// pausePerByte is the pause between snapshots for each byte of the last one. It is ten times as
// long as copying a byte takes, so that snapshots use less than a tenth of a processor whatever the
// size of the state.
const pausePerByte = 80 * time.Nanosecond

// writeLoop writes a snapshot from time to time. Its timer is the only use of the system's clock in
// the package; limits use the time of the calls.
func (s *SnapshotStore) writeLoop(every time.Duration) {
	defer close(s.stopped)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case at := <-timer.C:
			err := s.writeSnapshot(false)
			pause := max(every, time.Duration(len(s.buffer))*pausePerByte)
			s.note(at, pause, err)
			if err != nil && s.onError != nil {
				s.onError(err)
			}
			timer.Reset(pause)
		}
	}
}

// note notes how a look at the state ended that began at an instant, and the pause until the next.
func (s *SnapshotStore) note(at time.Time, pause time.Duration, err error) {
	stats := *s.stats.Load()
	stats.Interval = pause
	if err != nil {
		stats.Failures++
	} else {
		stats.Complete = at
	}
	s.stats.Store(&stats)
}

// SnapshotStats returns how the file has kept up with the state. The snapshot that Close writes is
// not in it.
func (s *SnapshotStore) SnapshotStats() driver.SnapshotStats { return *s.stats.Load() }

// writeSnapshot writes a snapshot of the state now, if anything has changed since the last one. The
// last one of a process says that the process has ended.
func (s *SnapshotStore) writeSnapshot(ended bool) error {
	s.callLock.Lock()
	last := ended && s.open && s.store.usage != nil // the file must say that nothing follows
	if !s.changed.Swap(false) && !last {
		s.callLock.Unlock()
		return nil
	}
	frozen := s.freeze(ended)
	s.callLock.Unlock()
	var err error
	s.buffer, err = s.encode(beginEnvelope(s.buffer[:0]), frozen)
	if err == nil {
		s.buffer = sealEnvelope(s.buffer)
		err = replaceFile(s.file, s.buffer)
	}
	if err != nil {
		s.changed.Store(true)
		return fmt.Errorf("weir: memory: write snapshot: %w", err)
	}
	s.open = !ended
	return nil
}

// Close writes a last snapshot if anything has changed, and releases the file for other stores.
// Calls after Close return errors with code [weir.Unavailable].
func (s *SnapshotStore) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		<-s.stopped
		s.callLock.Lock()
		s.closed = true
		s.callLock.Unlock()
		if !s.readOnly {
			s.closeErr = errors.Join(s.writeSnapshot(true), s.lock.release())
		}
	})
	return s.closeErr
}

// Traits is [Store.Traits].
func (s *SnapshotStore) Traits() driver.Traits { return s.store.Traits() }

// Reserve is [Store.Reserve] except for a lease ID that the store knows: then it answers with
// Replay if the request is the same, with [weir.Conflict] if it is not, and with [weir.Ended] if
// the lease has ended.
func (s *SnapshotStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	if known := s.records.find(now.UnixMilli(), p.ID); known != nil {
		return replay(known, p, out)
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.callLock.RUnlock()
	if err := ctx.Err(); err != nil { // the call may have waited for a snapshot
		return &weir.Error{Code: weir.Unavailable, Reason: "the context of the call has ended",
			Err: err}
	}
	if err := s.store.Reserve(ctx, now, p, out); err != nil || out.Denied {
		return err
	}
	lease := driver.LeaseRecord{
		ID: p.ID, State: driver.LeaseLive, Fingerprint: p.Fingerprint, At: out.At,
		Expires: p.Expires(out.At), Charges: p.Charges, Keys: p.Keys,
		Holdings: cloneHoldings(p.Holdings(out)), Limits: out.Limits,
	}
	s.records.add(now.UnixMilli(), &leaseRecord{LeaseRecord: lease, memory: p.Memory.Milliseconds()}, p.MemorySize)
	return nil
}

// replay answers a reservation whose lease is known.
func replay(known *driver.LeaseRecord, p *driver.Plan, out *driver.Outcome) error {
	e := &weir.Error{Field: "lease_id", Value: p.ID.String()}
	switch {
	case known.State != driver.LeaseLive:
		e.Code, e.Reason = weir.Ended, "was "+string(known.State)
		if known.State == driver.LeaseVoided {
			e.Reason = "was cancelled before it was reserved"
		}
		return e
	case known.Fingerprint != p.Fingerprint:
		e.Code, e.Reason = weir.Conflict, "was used for another request"
		return e
	}
	out.At, out.Replay = known.At, true
	return nil
}

// Update is [Store.Update].
func (s *SnapshotStore) Update(ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.callLock.RUnlock()
	if err := s.store.Update(ctx, now, u, out); err != nil {
		return err
	}
	s.records.update(now.UnixMilli(), u, out)
	return nil
}

// enter begins a call that may change something. If it returns no error, the caller ends the call
// with callLock.RUnlock.
func (s *SnapshotStore) enter() error {
	s.callLock.RLock()
	err := s.checkWritable()
	if s.closed {
		err = &weir.Error{Code: weir.Unavailable, Reason: "the store is closed"}
	}
	if err != nil {
		s.callLock.RUnlock()
		return err
	}
	// Load first: a store by every call would move the cache line between processors.
	if !s.changed.Load() {
		s.changed.Store(true)
	}
	return nil
}

// Status is [Store.Status].
func (s *SnapshotStore) Status(
	ctx context.Context, now time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	return s.store.Status(ctx, now, of)
}

// RecoverLease returns what the store knows of a lease, or nil. It never fails.
func (s *SnapshotStore) RecoverLease(
	_ context.Context, now time.Time, id weir.LeaseID,
) (*driver.LeaseRecord, error) {
	if known := s.records.find(now.UnixMilli(), id); known != nil && known.State != driver.LeaseVoided {
		return known, nil
	}
	return nil, nil // unknown, or never reserved
}

// AdoptLease returns an error with code [weir.Ended] if the ID was voided. Otherwise it does
// nothing, because the store never gives back a lease by itself.
func (s *SnapshotStore) AdoptLease(_ context.Context, now time.Time, id weir.LeaseID, _ uint64) error {
	if known := s.records.find(now.UnixMilli(), id); known != nil && known.State == driver.LeaseVoided {
		return &weir.Error{
			Code: weir.Ended, Field: "lease_id", Value: id.String(), Reason: "was cancelled before it was reserved",
		}
	}
	return nil
}

// VoidLease records that a lease ID has ended without having been reserved. exists reports whether
// the store has a lease with that ID. A read-only store records nothing, because it reserves
// nothing.
func (s *SnapshotStore) VoidLease(
	_ context.Context, now time.Time, id weir.LeaseID,
) (exists bool, err error) {
	if s.readOnly {
		return false, nil
	}
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.callLock.RUnlock()
	return s.records.void(now.UnixMilli(), id), nil
}

// Recovered reports whether the store was opened with a snapshot. early is the newest time in the
// ID of a lease that the store forgot.
func (s *SnapshotStore) Recovered() (early time.Time, ok bool) {
	s.records.mu.Lock()
	defer s.records.mu.Unlock()
	if s.records.horizon == 0 {
		return time.Time{}, s.recovered
	}
	return time.UnixMilli(s.records.horizon), s.recovered
}

// OwnLimits reports whether the file had a configuration of its own when it was opened, as after an
// apply of a limits file to it. If the store was opened with other definitions, or is given others
// as a whole, the next snapshot no longer has it.
func (s *SnapshotStore) OwnLimits() bool { return s.ownLimits }

// snapshotAdvice says what to do with a file that cannot be read as a snapshot.
const snapshotAdvice = "; put a copy of an earlier snapshot in its place, or move it away to begin without " +
	"one: every limit is then empty and every lease unknown"

func badFile(file, reason string, err error) *weir.Error {
	return &weir.Error{Code: weir.Invalid, Field: "snapshot", Value: file, Reason: reason, Err: err}
}

func unavailable(file string, err error) *weir.Error {
	return &weir.Error{
		Code: weir.Unavailable, Field: "snapshot", Value: file, Reason: "cannot be opened", Err: err,
	}
}
