package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

const (
	// connections is the number of concurrent requests, enough to keep the server busy.
	connections = 32
	// loadTimeout bounds one slice of load.
	loadTimeout = time.Minute

	workLoad     = "load"
	reservePath  = "/v1/reserve"
	completePath = "/v1/complete"
	reserveBody  = `{"entity":"acme","resource":"gpt-4o","costs":{"rpm":1,"tpm":500}}`
	completeBody = `{"lease_id":"%s","actuals":{"tpm":412}}`
	idLength     = 26 // of a lease's ID as text
)

// openServer serves httpapi's handler over a limiter, or a handler that reads and writes as many
// bytes and does nothing else.
func openServer(ctx context.Context, s *spec) (*workload, error) {
	l, err := openLimiter(s,
		weir.Limit{Name: "rpm", Capacity: plenty}, weir.Limit{Name: "tpm", Capacity: plentyTokens})
	if err != nil {
		return nil, err
	}
	var handler http.Handler = httphandler.New(l, nil)
	if s.Kind == kindNoHandler {
		handler, err = newPlainHandler(ctx, handler)
	} else {
		_, err = openRings(ctx, s, l, weir.Request{
			Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1, "tpm": 500},
		})
	}
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return &workload{address: listener.Addr().String(), close: func() error {
		err := server.Close()
		if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
			err = errors.Join(err, stopped)
		}
		return errors.Join(err, l.Close())
	}}, nil
}

// newPlainHandler returns a handler that answers every request with the same bytes and headers as
// the real handler.
func newPlainHandler(ctx context.Context, real http.Handler) (http.Handler, error) {
	reserved, err := record(ctx, real, reservePath, reserveBody)
	if err != nil {
		return nil, err
	}
	id, err := findLeaseID(reserved.Body.Bytes())
	if err != nil {
		return nil, err
	}
	completed, err := record(ctx, real, completePath, fmt.Sprintf(completeBody, id))
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
		_, _ = w.Write(answer.Body.Bytes()) // the load fails if bytes are missing
	}), nil
}

// record makes one request to a handler.
func record(
	ctx context.Context, h http.Handler, path, body string,
) (*httptest.ResponseRecorder, error) {
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

// openLoad opens a connection to a server for each caller, which is kept alive.
func openLoad(ctx context.Context, s *spec) (*workload, error) {
	var open []net.Conn
	w := &workload{works: map[string]*work{workLoad: {}}, close: func() error {
		var errs []error
		for _, c := range open {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}}
	dialer := &net.Dialer{Timeout: loadTimeout}
	for range s.Callers {
		c, err := dialer.DialContext(ctx, "tcp", s.Address)
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		open = append(open, c)
		w.works[workLoad].callers = append(w.works[workLoad].callers, newClient(c, s.Address).operate)
	}
	return w, nil
}

// client is one connection. It implements just enough of HTTP, and its requests are built
// beforehand, so that the load costs less than the server.
type client struct {
	conn     net.Conn
	reader   *bufio.Reader
	reserve  []byte
	complete []byte // with room for the lease's ID
	idAt     int
	body     []byte
	live     bool // complete has the ID of a lease that was not completed
}

func newClient(conn net.Conn, host string) *client {
	request := func(path, body string) []byte {
		return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", path, host, len(body), body)
	}
	mark := string(bytes.Repeat([]byte{'0'}, idLength))
	c := &client{
		conn: conn, reader: bufio.NewReader(conn), body: make([]byte, 1<<16),
		reserve: request(reservePath, reserveBody), complete: request(completePath, fmt.Sprintf(completeBody, mark)),
	}
	c.idAt = bytes.LastIndex(c.complete, []byte(mark))
	return c
}

// operate makes a request. Every second one completes the lease that the one before has reserved.
func (c *client) operate(context.Context) (opResult, error) {
	if c.live {
		c.live = false
		_, err := c.ask(c.complete)
		return admitted, err
	}
	// Setting a deadline costs little beside a request and its answer, so every second one does.
	if err := c.conn.SetDeadline(time.Now().Add(loadTimeout)); err != nil {
		return done, err
	}
	body, err := c.ask(c.reserve)
	if err != nil {
		return done, err
	}
	id, err := findLeaseID(body)
	copy(c.complete[c.idAt:], id)
	c.live = err == nil
	return admitted, err
}

// ask sends a request and returns the answer's body, which the next one overwrites.
func (c *client) ask(request []byte) ([]byte, error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	status, length := "", -1
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if status == "" {
			status = string(line)
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return nil, fmt.Errorf("answer: %w", err)
			}
		}
	}
	if status != "HTTP/1.1 200 OK" || length < 0 || length > len(c.body) {
		return nil, fmt.Errorf("answer: got %q with %d bytes, want 200", status, length)
	}
	_, err := io.ReadFull(c.reader, c.body[:length])
	return c.body[:length], err
}

// findLeaseID finds the lease's ID in the answer to a reservation.
func findLeaseID(body []byte) ([]byte, error) {
	_, after, ok := bytes.Cut(body, []byte(`"lease_id":"`))
	if !ok || len(after) < idLength {
		return nil, fmt.Errorf("answer: no lease_id in %q", body)
	}
	return after[:idLength], nil
}
