package server

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"

	"github.com/weir-limiter/weir"
)

// denialLog is an observer that logs denials. Entities are in the logs at debug level only.
type denialLog struct {
	logger *slog.Logger
}

// Observe logs a denial.
func (d denialLog) Observe(ctx context.Context, e weir.Event) {
	if !d.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	denied, ok := errors.AsType[*weir.DeniedError](e.Err)
	if !ok {
		return
	}
	d.logger.LogAttrs(ctx, slog.LevelDebug, "denied", slog.String("lease_id", e.LeaseID.String()),
		slog.Any("reason", denied), slog.Duration("retry_after", denied.RetryAfter))
}

// httpErrors passes on what net/http says of connections. Most of it is the doing of clients.
func httpErrors(logger *slog.Logger) *log.Logger {
	return log.New(httpErrorWriter{logger}, "", 0)
}

type httpErrorWriter struct {
	logger *slog.Logger
}

func (w httpErrorWriter) Write(p []byte) (int, error) {
	level := slog.LevelDebug
	switch {
	case bytes.HasPrefix(p, []byte("http: panic")):
		level = slog.LevelError
	case bytes.HasPrefix(p, []byte("http: Accept error")):
		level = slog.LevelWarn
	}
	w.logger.Log(context.Background(), level, "http server",
		slog.String("said", string(bytes.TrimSpace(p))))
	return len(p), nil
}
