package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// The paths that the load asks for.
const (
	reservePath  = "/v1/reserve"
	completePath = "/v1/complete"
)

// The requests, as a caller of the API would send them.
const (
	reserveBody = `{"entity":"acme","resource":"gpt-4o","costs":{"rpm":1,"tpm":500}}`
	// completeBody has the lease's ID at the mark.
	completeBody = `{"lease_id":"%s","actuals":{"tpm":412}}`
)

// The works of a server: what is between them is measured.
const (
	workBegin = "begin"
	workEnd   = "end"
)

// serverWorld is httpapi's handler over a limiter, or a handler that reads as much and answers as much
// and does nothing in between, on an equal listener.
func serverWorld(spec *worldSpec) (*world, error) {
	l, err := openLimiter(
		weir.Limit{Name: "rpm", Capacity: plenty}, weir.Limit{Name: "tpm", Capacity: plentyTokens})
	if err != nil {
		return nil, err
	}
	var handler http.Handler = httpapi.NewHandler(l, nil)
	if spec.Name == worldPlain {
		if handler, err = plainHandler(handler); err != nil {
			return nil, err
		}
	} else if err := rememberCalls(l, spec); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var m meter
	return &world{
		address: listener.Addr().String(),
		works: map[string]work{
			workBegin: func(*meter, int) error {
				m = meter{}
				m.start()
				return nil
			},
			workEnd: func(out *meter, n int) error {
				m.stop(n)
				out.measure = m.measure
				return nil
			},
		},
		close: func() error {
			err := server.Close()
			if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
				err = errors.Join(err, stopped)
			}
			return errors.Join(err, l.Close())
		},
	}, nil
}

// rememberCalls leaves the limiter as it is in a process that has run for a while.
func rememberCalls(l *weir.Limiter, spec *worldSpec) error {
	ring := &weirRing{limiter: l, requests: []weir.Request{{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1, "tpm": 500},
	}}}
	return errors.Join(ring.remember(spec.Remembered), ring.fill(spec.Live))
}

// plainHandler answers every request as the real handler answers one: with the same bytes and the
// same headers.
func plainHandler(real http.Handler) (http.Handler, error) {
	reserved, err := record(real, reservePath, reserveBody)
	if err != nil {
		return nil, err
	}
	id, err := leaseIDIn(reserved.Body.Bytes())
	if err != nil {
		return nil, err
	}
	completed, err := record(real, completePath, fmt.Sprintf(completeBody, id))
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer := reserved
		if r.URL.Path == completePath {
			answer = completed
		}
		maps.Copy(w.Header(), answer.Header())
		_, _ = w.Write(answer.Body.Bytes()) // the load notices what it does not get
	}), nil
}

// record asks a handler once.
func record(h http.Handler, path, body string) (*httptest.ResponseRecorder, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	r.RequestURI = path
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return nil, fmt.Errorf("%s: got %d, want 200: %s", path, w.Code, w.Body)
	}
	return w, nil
}
