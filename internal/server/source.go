package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// source is something that is read from files, and again when they change.
type source struct {
	// what it is: "limits", "tokens" or "certificate".
	what    string
	files   []string
	options []string // those that name the files
	most    int64    // bytes in each file
	// modes is true where it counts who may read the files.
	modes bool
	// onlyChanges is true where the same contents are not put in force again: something else may
	// have changed what is in force since, and that stays.
	onlyChanges bool
	// load puts what was read in force, or says what is wrong and leaves what is.
	load func(ctx context.Context, read []fileState) error
	// tried is what load was last called with; seen is what the watch saw last; inForce is what load
	// last took.
	tried, seen, inForce fingerprint
}

// look is what the files are now.
func (s *source) look() fingerprint {
	return fingerprintOf(readFiles(s.files, s.most), s.modes)
}

// read loads a source, unless what it holds is in force already. It remembers the very bytes that it
// loaded: what is not the same will be seen, however often the files changed meanwhile.
func (s *source) read(ctx context.Context) (changed bool, err error) {
	states := readFiles(s.files, s.most)
	now := fingerprintOf(states, s.modes)
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
	if err := s.load(ctx, states); err != nil {
		return false, &FileError{Err: err}
	}
	s.inForce = now
	return true, nil
}

// FileError is an error about what is in a file, or about reading it.
type FileError struct {
	// Option and File are set if a file cannot be read: the option that names it, in the words of the
	// command line, and its name.
	Option, File string
	// Err says what is wrong; if File is empty, it also says in which file.
	Err error
}

// Error returns what Err says, after the option and the file if they are set.
func (e *FileError) Error() string {
	if e.Option == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s %q: %v", e.Option, e.File, e.Err)
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

// Reload reads every file again: limits, bearer tokens, certificate. What is wrong is reported,
// joined, and logged, and what was in force before stays so. Limits that are the same as those last
// put in force are not put in force again. It may be called at any time.
func (s *Server) Reload(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	var errs []error
	for _, of := range s.sources {
		errs = append(errs, s.again(ctx, of))
	}
	return errors.Join(errs...)
}

// again reads a source while the server runs.
func (s *Server) again(ctx context.Context, of *source) error {
	changed, err := of.read(ctx)
	s.metrics.reloaded(of.what, time.Now(), err)
	for _, line := range mistakes(err) {
		s.options.Logger.LogAttrs(ctx, slog.LevelError, "reload refused",
			slog.String("what", of.what), slog.String("error", line))
	}
	switch {
	case err != nil:
	case changed:
		s.options.Logger.LogAttrs(ctx, slog.LevelInfo, "reloaded", slog.String("what", of.what))
	default:
		s.options.Logger.LogAttrs(ctx, slog.LevelInfo, "nothing has changed", slog.String("what", of.what))
	}
	return err
}

// watch reads files again that have changed, until ctx ends.
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
			s.glance(ctx)
		}
	}
}

// glance looks at the files once. A change counts when it is seen twice the same: a file that is
// being written may be valid and yet not whole.
func (s *Server) glance(ctx context.Context) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	for _, of := range s.sources {
		now := of.look()
		if now != of.tried && now == of.seen {
			_ = s.again(ctx, of) // it is logged and counted
		} else {
			of.seen = now
		}
	}
}

// mistakes returns the lines of an error, one for each mistake.
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
