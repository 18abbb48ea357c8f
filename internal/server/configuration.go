package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
)

// maxLimitsFile bounds a limits file; [manifest.Parse] takes less and says so.
const maxLimitsFile = 8 << 20

// openSources reads the files for the first time. All mistakes are reported, joined.
func (s *Server) openSources(ctx context.Context) error {
	o := &s.options
	if o.LimitsFile != "" {
		if !s.volatile {
			return &weir.Error{Code: weir.Unsupported, Field: "limits", Value: o.LimitsFile,
				Reason: "this store keeps its configuration itself: use weir limits apply"}
		}
		s.sources = append(s.sources, &source{
			what: "limits", files: []string{o.LimitsFile}, load: s.loadLimits,
		})
	}
	if o.TokensFile != "" {
		s.tokens = &tokens{file: o.TokensFile}
		s.sources = append(s.sources, &source{
			what: "tokens", files: []string{o.TokensFile},
			load: func(context.Context) error { return s.tokens.load() },
		})
	}
	if o.CertFile != "" {
		s.certificate = &certificate{certFile: o.CertFile, keyFile: o.KeyFile}
		s.sources = append(s.sources, &source{
			what: "certificate", files: []string{o.CertFile, o.KeyFile},
			load: func(context.Context) error { return s.certificate.load() },
		})
		s.metrics.watchCertificate(s.certificate)
	}
	var errs []error
	for _, of := range s.sources {
		if err := of.read(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		s.metrics.loaded(of.what, time.Now())
	}
	return errors.Join(errs...)
}

// loadLimits makes the limits file the configuration.
func (s *Server) loadLimits(ctx context.Context) error {
	name := s.options.LimitsFile
	data, _, err := readFile(name, maxLimitsFile)
	if err != nil {
		return err
	}
	m, err := manifest.Parse(name, data)
	if err != nil {
		return err
	}
	if err := s.limiter.Configure(ctx, m.Definitions); err != nil {
		return m.Locate(err)
	}
	s.options.Logger.LogAttrs(ctx, slog.LevelInfo, "limits are in force", slog.String("file", name),
		slog.String("namespace", m.Namespace), slog.Int("resources", len(m.Definitions.Resources)),
		slog.Int("entities", len(m.Definitions.Entities)))
	return nil
}

// adminNote says how long an administrator's write holds, where that is not for good.
func (s *Server) adminNote() string {
	switch {
	case !s.volatile:
		return ""
	case s.options.LimitsFile == "":
		return "holds until the next restart"
	}
	return "holds until the next reload of the limits file, or restart"
}

// tlsConfig is nil where there is no certificate.
func (s *Server) tlsConfig() *tls.Config {
	if s.certificate == nil {
		return nil
	}
	return s.certificate.config()
}
