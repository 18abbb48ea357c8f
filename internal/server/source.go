package server

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// maxWatched bounds what is read of a watched file to see whether it has changed.
const maxWatched = 8 << 20

// source is something that is read from files, and again when they change.
type source struct {
	// what it is: "limits", "tokens" or "certificate".
	what  string
	files []string
	// load reads the files and puts them in force, or says what is wrong and leaves what is.
	load func(ctx context.Context) error
	// tried is what load was last called on; seen is what the watch saw last.
	tried, seen fingerprint
}

// read loads a source. What changes from now on will be seen.
func (s *source) read(ctx context.Context) error {
	s.tried = look(s.files, maxWatched)
	s.seen = s.tried
	return s.load(ctx)
}

// Reload reads every file again: limits, bearer tokens, certificate. What is wrong is reported,
// joined, and logged, and what was in force before stays so. It may be called at any time.
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
	err := of.read(ctx)
	s.metrics.reloaded(of.what, time.Now(), err)
	for _, line := range mistakes(err) {
		s.options.Logger.LogAttrs(ctx, slog.LevelError, "reload refused",
			slog.String("what", of.what), slog.String("error", line))
	}
	if err == nil {
		s.options.Logger.LogAttrs(ctx, slog.LevelInfo, "reloaded", slog.String("what", of.what))
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
		now := look(of.files, maxWatched)
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
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, e := range joined.Unwrap() {
			lines = append(lines, mistakes(e)...)
		}
		return lines
	}
	return []string{err.Error()}
}
