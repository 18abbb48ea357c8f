package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// connections is how many requests are under way at once: enough that the server always has one.
const connections = 32

// loadTimeout bounds one slice of load.
const loadTimeout = time.Minute

// loadWorld has connections to each server, kept alive. Its works are named like the servers.
func loadWorld(spec *worldSpec) (*world, error) {
	w := &world{works: map[string]work{}}
	dialer := &net.Dialer{Timeout: loadTimeout}
	var open []net.Conn
	w.close = func() error {
		var errs []error
		for _, c := range open {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	for name, address := range spec.Servers {
		var loops []loop
		for range connections {
			c, err := dialer.DialContext(context.Background(), "tcp", address)
			if err != nil {
				return nil, errors.Join(err, w.close())
			}
			open = append(open, c)
			loops = append(loops, newCaller(c, address).loop)
		}
		w.works[name] = parallel(loops)
	}
	return w, nil
}

// caller is one connection. It speaks as much HTTP as it needs to, with bytes made beforehand, so
// that the load costs less than what it is for.
type caller struct {
	conn     net.Conn
	reader   *bufio.Reader
	reserve  []byte
	complete []byte // with room for the lease's ID
	idAt     int
	body     []byte
}

func newCaller(conn net.Conn, address string) *caller {
	c := &caller{conn: conn, reader: bufio.NewReader(conn), body: make([]byte, 1<<16)}
	c.reserve = requestBytes(address, reservePath, reserveBody)
	mark := string(bytes.Repeat([]byte{'0'}, idLength))
	c.complete = requestBytes(address, completePath, fmt.Sprintf(completeBody, mark))
	c.idAt = bytes.LastIndex(c.complete, []byte(mark))
	return c
}

// idLength is the length of a lease's ID as text.
const idLength = 26

func requestBytes(address, path, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", path, address, len(body), body)
}

// loop makes n requests, each second one the completion of what the first reserved.
func (c *caller) loop(n int) (tally, error) {
	if err := c.conn.SetDeadline(time.Now().Add(loadTimeout)); err != nil {
		return tally{}, err
	}
	var t tally
	for t.admitted < int64(n) {
		body, err := c.ask(c.reserve)
		if err != nil {
			return t, err
		}
		id, err := leaseIDIn(body)
		if err != nil {
			return t, err
		}
		copy(c.complete[c.idAt:], id)
		if _, err := c.ask(c.complete); err != nil {
			return t, err
		}
		t.admitted += 2
	}
	return t, nil
}

// ask sends a request and returns the answer's body, which the next one overwrites.
func (c *caller) ask(request []byte) ([]byte, error) {
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

// leaseIDIn finds the lease's ID in the answer to a reservation.
func leaseIDIn(body []byte) ([]byte, error) {
	_, after, ok := bytes.Cut(body, []byte(`"lease_id":"`))
	if !ok || len(after) < idLength {
		return nil, fmt.Errorf("answer: no lease_id in %q", body)
	}
	return after[:idLength], nil
}
