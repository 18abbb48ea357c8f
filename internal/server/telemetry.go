package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
)

// RouteTelemetry sends what OpenTelemetry says of itself to a logger, and warns of variables that it
// leaves aside. It is for the command that owns the process, before traces are made: OpenTelemetry's
// handlers are one for all of it.
//
// OpenTelemetry's own logger is silenced: it writes lines of its own form to standard error and quotes
// the variables in them, OTEL_EXPORTER_OTLP_HEADERS with its secrets too. What it would say about the
// variables is said here, without their values.
func RouteTelemetry(ctx context.Context, env func(string) string, logger *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "traces", slog.Any("error", err))
	}))
	setZero(otel.SetLogger) // a zero logger discards
	for _, v := range unusable(env) {
		logger.LogAttrs(ctx, slog.LevelWarn, "a variable is left aside: traces go without it",
			slog.String("variable", v.name), slog.Any("reason", v.err))
	}
}

// setZero sets something to its zero value, whose type has no name in a module that is used here.
func setZero[T any](set func(T)) {
	var zero T
	set(zero)
}

// variable is one that cannot be used, and why.
type variable struct {
	name string
	err  error
}

// unusable finds the variables that the exporter cannot use, for all signals and for traces alone.
func unusable(env func(string) string) []variable {
	var all []variable
	note := func(name string, err error) {
		if err != nil {
			all = append(all, variable{name, err})
		}
	}
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"} {
		for _, of := range []struct {
			suffix string
			check  func(string) error
		}{
			{"HEADERS", checkHeaders}, {"TIMEOUT", checkMilliseconds}, {"CERTIFICATE", checkAuthorities},
		} {
			if value := strings.TrimSpace(env(prefix + of.suffix)); value != "" {
				note(prefix+of.suffix, of.check(value))
			}
		}
		cert, key := env(prefix+"CLIENT_CERTIFICATE"), env(prefix+"CLIENT_KEY")
		if cert != "" && key != "" {
			_, err := tls.LoadX509KeyPair(strings.TrimSpace(cert), strings.TrimSpace(key))
			note(prefix+"CLIENT_CERTIFICATE", err)
		}
	}
	return all
}

// checkHeaders wants name=value, name=value, with values percent-encoded. It quotes nothing of them.
func checkHeaders(value string) error {
	n := 0
	for pair := range strings.SplitSeq(value, ",") {
		n++
		name, encoded, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("header %d has no '='", n)
		}
		if !isHeaderName(strings.TrimSpace(name)) {
			return fmt.Errorf("header %d has a name that no header has", n)
		}
		if _, err := url.PathUnescape(encoded); err != nil {
			return fmt.Errorf("header %d has a malformed percent-encoding", n)
		}
	}
	return nil
}

func isHeaderName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') &&
			strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}

func checkMilliseconds(value string) error {
	if _, err := strconv.Atoi(value); err != nil {
		return errors.New("must be a whole number of milliseconds")
	}
	return nil
}

func checkAuthorities(file string) error {
	data, _, err := readFile(file, maxPEM)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		return fmt.Errorf("%s: has no certificate in PEM", file)
	}
	return nil
}
