package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// source is a part of the configuration that is read from files, and again when they change.
type source struct {
	// what is "limits", "tokens" or "certificate".
	what    string
	files   []string
	options []string // the command line's names of the files
	most    int64    // bytes that each file may have
	// modes is true if the permissions of the files matter.
	modes bool
	// onlyChanges is true if the same contents are not put in force again, because something else
	// may have changed what is in force since.
	onlyChanges bool
	// load puts what was read in force, and returns what is different from before, as fields for the
	// log. With an error it changes nothing.
	load func(ctx context.Context, read []fileContent) ([]slog.Attr, error)
	// changes are the fields that load returned last.
	changes []slog.Attr
	// tried is the fingerprint with which load was last called, seen the one that the watch saw
	// last, and inForce the one that load last put in force.
	tried, seen, inForce fileDigest
}

// currentFingerprint returns the fingerprint of the files as they are now.
func (s *source) currentFingerprint() fileDigest {
	return fileDigestOf(readFiles(s.files, s.most), s.modes)
}

// loadChanged loads a source, unless its contents are in force already. It takes the fingerprint of
// the bytes that it loads, so that no later change is missed.
func (s *source) loadChanged(ctx context.Context) (changed bool, err error) {
	states := readFiles(s.files, s.most)
	now := fileDigestOf(states, s.modes)
	s.tried, s.seen = now, now
	for i := range states {
		if states[i].err != nil {
			err = errors.Join(err, &FileError{Option: s.options[i], File: states[i].name, Err: states[i].err})
		}
	}
	switch {
	case err != nil:
		return false, err
	case s.onlyChanges && now == s.inForce:
		return false, nil
	}
	if s.changes, err = s.load(ctx, states); err != nil {
		return false, &FileError{Err: err}
	}
	s.inForce = now
	return true, nil
}

// FileError is an error in a file, or in reading it.
type FileError struct {
	// Option and File are set if a file cannot be read: the command line's option for it, and its
	// name.
	Option, File string
	// Err is the mistake. If File is empty, the text of Err names the file.
	Err error
}

// Error returns the text of Err, after the option and file if they are set.
func (e *FileError) Error() string {
	if e.Option == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s %q: %v", e.Option, e.File, e.Err)
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

// Reload reads every file again: limits, bearer tokens and certificate. It logs all mistakes and
// returns them, joined; if there is one, what was in force before stays in force. Limits are not
// put in force again if they have not changed after they were last put in force. The log names a
// signal as the cause. It may be called at any time.
func (s *Server) Reload(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	var errs []error
	for _, of := range s.sources {
		errs = append(errs, s.reload(ctx, of, causeSignal))
	}
	return errors.Join(errs...)
}

// reload reads a source again, and logs and counts the result.
func (s *Server) reload(ctx context.Context, of *source, cause reloadCause) error {
	changed, err := of.loadChanged(ctx)
	s.metrics.reloaded(of.what, time.Now(), err)
	because := slog.String("cause", string(cause))
	for _, line := range mistakes(err) {
		s.options.Logger.LogAttrs(ctx, slog.LevelError, "reload refused",
			slog.String("what", of.what), slog.String("error", line), because)
	}
	switch {
	case err != nil:
	case changed:
		attrs := append([]slog.Attr{slog.String("what", of.what), because}, of.changes...)
		s.options.Logger.LogAttrs(ctx, slog.LevelInfo, "reloaded", attrs...)
	default:
		s.options.Logger.LogAttrs(ctx, slog.LevelInfo, "nothing has changed",
			slog.String("what", of.what), because)
	}
	return err
}

// watch reads changed files again until ctx ends.
func (s *Server) watch(ctx context.Context) {
	if s.options.Watch < 0 || len(s.sources) == 0 {
		return
	}
	ticker := time.NewTicker(s.options.Watch)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.checkFiles(ctx)
		}
	}
}

// checkFiles looks for changed files once. A change counts when it was seen twice, because a file
// that is being written may be valid and yet incomplete.
func (s *Server) checkFiles(ctx context.Context) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	for _, of := range s.sources {
		now := of.currentFingerprint()
		if now != of.tried && now == of.seen {
			_ = s.reload(ctx, of, causeFileChange) // the error is logged and counted
		} else {
			of.seen = now
		}
	}
}

// mistakes returns a line for each error that err joins.
func mistakes(err error) []string {
	if err == nil {
		return nil
	}
	if file, ok := err.(*FileError); ok && file.Option == "" {
		return mistakes(file.Err)
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, e := range joined.Unwrap() {
			lines = append(lines, mistakes(e)...)
		}
		return lines
	}
	return []string{err.Error()}
}

// fileDigest is a hash of a group of files.
type fileDigest [sha256.Size]byte

// fileContent is a file as it was read.
type fileContent struct {
	name string
	data []byte
	mode os.FileMode
	// lent is true if the file is root's and the server is another user.
	lent bool
	err  error // why it cannot be read, without its name
}

// readFiles reads files, each of which may have at most limit bytes.
func readFiles(files []string, limit int64) []fileContent {
	states := make([]fileContent, 0, len(files))
	for _, name := range files {
		s := fileContent{name: name}
		var info os.FileInfo
		if s.data, info, s.err = readFile(name, limit); s.err == nil {
			s.mode, s.lent = info.Mode(), lentByRoot(info)
		}
		states = append(states, s)
	}
	return states
}

// fileDigestOf returns the fingerprint of contents, and of modes if these matter. A file that
// cannot be read is represented by its error.
func fileDigestOf(states []fileContent, modes bool) fileDigest {
	h := sha256.New()
	for i := range states {
		s := &states[i]
		if s.err != nil {
			h.Write(fmt.Appendf(nil, "error %v\n", s.err))
			continue
		}
		if modes {
			h.Write(fmt.Appendf(nil, "mode %v %t\n", s.mode, s.lent))
		}
		h.Write(fmt.Appendf(nil, "bytes %d\n", len(s.data)))
		h.Write(s.data)
	}
	return fileDigest(h.Sum(nil))
}

// readFile returns the contents of a regular file, which may have at most limit bytes, and what the
// system knows of it. Its errors do not name the file.
func readFile(name string, limit int64) ([]byte, os.FileInfo, error) {
	info, err := os.Stat(name) // opening a device may have effects
	if err != nil {
		return nil, nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNotRegular
	}
	return readRegular(name, limit)
}

// readRegular opens a file without waiting, which opening a pipe would do, and checks again that it
// is a regular one, because another file may have got its name in between.
func readRegular(name string, limit int64) ([]byte, os.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, nil, withoutPath(err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	info, err := f.Stat()
	if err != nil {
		return nil, nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, nil, withoutPath(err)
	case int64(len(data)) > limit:
		return nil, nil, fmt.Errorf("has more than %d bytes", limit)
	}
	return data, info, nil
}

var errNotRegular = errors.New("is not a regular file")

// withoutPath returns the cause of an error of package os, which would name the file.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// ReadLimits reads a limits file as [New] does. Its errors are [*FileError]s.
func ReadLimits(file string) ([]byte, error) {
	data, _, err := readFile(file, maxLimitsFile)
	if err != nil {
		return nil, &FileError{Option: "limits", File: file, Err: err}
	}
	return data, nil
}
