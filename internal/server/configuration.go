package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
)

// maxLimitsFile bounds a limits file. The bound of [manifest.Parse] is lower, and its error better.
const maxLimitsFile = 8 << 20

// openTokens reads the bearer tokens before the limiter is made, because the number of callers
// decides how many leases each may have. It returns their source, or nil without a file.
func (s *Server) openTokens(ctx context.Context) (*source, error) {
	if s.options.TokensFile == "" {
		return nil, nil // no bearer tokens are in use
	}
	s.tokens = &tokenSet{}
	of := &source{
		what: "tokens", files: []string{s.options.TokensFile}, options: []string{"tokens"},
		most: maxTokenFile, modes: true,
		load: func(_ context.Context, read []fileContent) ([]slog.Attr, error) {
			return s.tokens.load(&read[0])
		},
	}
	if _, err := of.loadChanged(ctx); err != nil {
		return of, err
	}
	s.metrics.opened(of.what, time.Now())
	return of, nil
}

// openSources reads the other files for the first time. It returns all mistakes, joined; mistakes
// has those in the file of bearer tokens.
func (s *Server) openSources(ctx context.Context, tokens *source, mistakes error) error {
	o := &s.options
	if o.LimitsFile != "" {
		if !s.volatile {
			return &weir.Error{Code: weir.Unsupported, Field: "limits", Value: o.LimitsFile,
				Reason: "this store keeps its own configuration: change it with weir limits apply, " +
					"or with weir system, resource and entity set-limits"}
		}
		s.sources = append(s.sources, &source{
			what: "limits", files: []string{o.LimitsFile}, options: []string{"limits"},
			most: maxLimitsFile, load: s.firstLimits,
			onlyChanges: s.editable, // an administrator may have changed the configuration since
		})
	}
	if tokens != nil {
		s.sources = append(s.sources, tokens)
	}
	if o.CertFile != "" {
		s.certificate = &certificate{}
		s.sources = append(s.sources, &source{
			what: "certificate", files: []string{o.CertFile, o.KeyFile},
			options: []string{"tls-cert", "tls-key"}, most: maxPEM, modes: true, load: s.loadCertificate,
		})
		s.metrics.watchCertificate(s.certificate)
	}
	var errs []error
	for _, of := range s.sources {
		if of == tokens {
			errs = append(errs, mistakes) // it was read before
			continue
		}
		if _, err := of.loadChanged(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		s.metrics.opened(of.what, time.Now())
	}
	for _, of := range s.sources {
		if of.what == "limits" {
			of.load = s.loadLimits
		}
	}
	return errors.Join(errs...)
}

// firstLimits puts the limits file in force, unless the store was opened with it and has already
// decided whether it is in force. The result is logged when the server listens, so that the log of a
// server that cannot listen does not say that limits are in force.
func (s *Server) firstLimits(ctx context.Context, read []fileContent) ([]slog.Attr, error) {
	if s.options.LimitsOpened != nil && bytes.Equal(s.options.LimitsOpened, read[0].data) {
		m, err := manifest.Parse(read[0].name, read[0].data)
		if err != nil {
			return nil, err
		}
		s.loaded = m.Definitions
		s.logFirstLimits = func(ctx context.Context) { s.announceLimits(ctx, read[0].name) }
		return nil, nil // nothing is different yet
	}
	m, err := s.putInForce(ctx, &read[0])
	if err != nil {
		return nil, err
	}
	s.loaded = m.Definitions
	s.logFirstLimits = func(ctx context.Context) { s.logLimits(ctx, read[0].name, m) }
	return nil, nil
}

// announceLimits logs whether the limits that the store was opened with are in force.
func (s *Server) announceLimits(ctx context.Context, file string) {
	switch err := s.ready(ctx); {
	case err == nil:
		s.options.Logger.LogAttrs(ctx, slog.LevelInfo, "limits are in force", slog.String("file", file))
	case errors.Is(err, weir.Superseded):
		s.options.Logger.LogAttrs(ctx, slog.LevelWarn,
			"limits of the file are not in force: the store has others", slog.String("file", file))
	default: // the error is logged when the server finds that it is not ready
		s.options.Logger.LogAttrs(ctx, slog.LevelWarn, "limits may not be in force", slog.String("file", file))
	}
}

// loadLimits puts the limits file in force, and logs that.
func (s *Server) loadLimits(ctx context.Context, read []fileContent) ([]slog.Attr, error) {
	m, err := s.putInForce(ctx, &read[0])
	if err != nil {
		return nil, err
	}
	s.logLimits(ctx, read[0].name, m)
	changes := limitChanges(s.loaded, m.Definitions)
	s.loaded = m.Definitions
	return changes, nil
}

// putInForce puts the limits file in force.
func (s *Server) putInForce(ctx context.Context, read *fileContent) (*manifest.Manifest, error) {
	m, err := manifest.Parse(read.name, read.data)
	if err != nil {
		return nil, err
	}
	if s.options.Namespace != "" {
		if err := m.CheckNamespace(s.options.Namespace); err != nil {
			return nil, err
		}
	}
	if err := s.limiter.Configure(ctx, m.Definitions); err != nil {
		return nil, m.Locate(err)
	}
	return m, nil
}

// logLimits logs that the limits of a file are in force.
func (s *Server) logLimits(ctx context.Context, name string, m *manifest.Manifest) {
	s.options.Logger.LogAttrs(ctx, slog.LevelInfo, "limits are in force", slog.String("file", name),
		slog.String("namespace", m.Namespace), slog.Int("resources", len(m.Definitions.Resources)),
		slog.Int("entities", len(m.Definitions.Entities)))
}

// loadCertificate puts the certificate and its key in force, and logs warnings about them.
func (s *Server) loadCertificate(ctx context.Context, read []fileContent) ([]slog.Attr, error) {
	before := s.certificate.current.Load()
	if err := s.certificate.load(&read[0], &read[1]); err != nil {
		return nil, err
	}
	for _, warning := range s.certificate.warnings(time.Now(), &read[1]) {
		s.options.Logger.LogAttrs(ctx, slog.LevelWarn, warning,
			slog.String("certificate", read[0].name), slog.String("key", read[1].name))
	}
	return certificateChanges(before, s.certificate.current.Load()), nil
}

// adminNote returns how long a change of the configuration holds, unless it is permanent.
func (s *Server) adminNote() string {
	switch {
	case !s.volatile || s.limits != nil && s.options.LimitsFile == "":
		return ""
	case s.options.LimitsFile == "":
		return "applies until the next restart"
	}
	return "applies until the limits file changes or the server restarts"
}

// tlsConfig returns nil without a certificate.
func (s *Server) tlsConfig() *tls.Config {
	if s.certificate == nil {
		return nil
	}
	return s.certificate.config()
}

// maxPEM bounds the files of a certificate and its key.
const maxPEM = 1 << 20

// certificate is the certificate in force.
type certificate struct {
	current atomic.Pointer[tls.Certificate]
}

// load puts a certificate and its key in force, unless they do not match.
func (c *certificate) load(cert, key *fileContent) error {
	pair, err := tls.X509KeyPair(cert.data, key.data)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", cert.name, key.name, err)
	}
	c.current.Store(&pair)
	return nil
}

// warnings returns what is wrong with the certificate in force, but no reason to refuse it. A group
// may read the key, because that is how a server without privileges gets it.
func (c *certificate) warnings(now time.Time, key *fileContent) []string {
	var all []string
	if leaf := c.current.Load().Leaf; leaf != nil {
		switch {
		case now.After(leaf.NotAfter):
			all = append(all, "the certificate has expired: it was valid until "+
				leaf.NotAfter.UTC().Format(time.RFC3339))
		case now.Before(leaf.NotBefore):
			all = append(all, "the certificate is not valid yet: it will be from "+
				leaf.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	if runtime.GOOS != "windows" && key.mode.Perm()&0o006 != 0 {
		all = append(all, fmt.Sprintf("the certificate's key can be read or changed by every user of this "+
			"machine: its mode is %04o", key.mode.Perm()))
	}
	return all
}

// config returns a configuration with which a new connection uses the certificate then in force.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	}
}

// validity returns from when until when the certificate in force is valid.
func (c *certificate) validity() (from, until time.Time) {
	if leaf := c.current.Load().Leaf; leaf != nil {
		return leaf.NotBefore, leaf.NotAfter
	}
	return time.Time{}, time.Time{}
}
