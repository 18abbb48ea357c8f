package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// roundTrips is a base transport made from a function.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTransportFailures checks that a failure before anything was sent refunds the units. After
// that, the call may have been billed.
func TestTransportFailures(t *testing.T) {
	refused := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errGone
	}}
	tests := []struct {
		name     string
		base     http.RoundTripper // nil for the upstream's
		upstream http.HandlerFunc
		url      string
		used     int64
	}{
		{"no server listens", refused, nil, "", 0},
		{"behind another transport", roundTrips(refused.RoundTrip), nil, "", 0},
		{"no such scheme", refused, nil, "gopher://host", 0},
		{
			"a transport that says nothing",
			roundTrips(func(*http.Request) (*http.Response, error) { return nil, errGone }),
			nil,
			"",
			4,
		},
		{
			"the answer is cut off",
			nil,
			func(w http.ResponseWriter, _ *http.Request) { cut(w, "HTTP/1.1 200 O") },
			"",
			4,
		},
		{"no answer", nil, func(w http.ResponseWriter, _ *http.Request) { cut(w, "") }, "", 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calling(t, httpapi.TransportOptions{Base: test.base}, test.upstream,
				func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
					if test.url != "" {
						url = test.url
					}
					if body, err := get(t.Context(), c, url); err == nil {
						_ = body.Close()
						t.Error("got a response")
					}
					a.used("after", test.used, 0)
				})
		})
	}
}

// TestTransportBodyBreaks checks that a body that ends too early is settled by the part that was
// read.
func TestTransportBodyBreaks(t *testing.T) {
	calling(
		t,
		httpapi.TransportOptions{Actuals: tokens},
		func(w http.ResponseWriter, _ *http.Request) {
			cut(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nused 2\n")
		},
		func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
			if err := readAndClose(got(t, c, url)); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v, want an unexpected end", err)
			}
			a.used("after", 2, 0)
		},
	)
}

// TestTransportContextEndsWhileSending checks that nothing is refunded if the context ends while
// the base transport sends, because only the base transport knows what was written.
func TestTransportContextEndsWhileSending(t *testing.T) {
	for name, heedless := range map[string]bool{"a base that listens": false, "a base that does not": true} {
		t.Run(name, func(t *testing.T) {
			reached := make(chan struct{})
			o := httpapi.TransportOptions{}
			if heedless {
				o.Base = roundTrips(func(*http.Request) (*http.Response, error) {
					close(reached)
					time.Sleep(time.Hour / 2) // in a bubble
					return nil, errGone
				})
			}
			calling(t, o, func(_ http.ResponseWriter, r *http.Request) {
				close(reached)
				<-r.Context().Done()
			}, func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
				ctx, cancel := context.WithCancel(t.Context())
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				var looking sync.WaitGroup
				looking.Go(func() {
					<-reached
					cancel()
					if heedless {
						time.Sleep(time.Minute) // in a bubble
						a.used("while it is sending", 4, 1)
					}
				})
				resp, err := c.Transport.RoundTrip(req)
				if err == nil {
					_ = resp.Body.Close()
					t.Error("got a response")
				}
				looking.Wait()
				synctest.Wait()
				a.used("after", 4, 0)
			})
		})
	}
}

func TestTransportBasePanics(t *testing.T) {
	base := roundTrips(func(*http.Request) (*http.Response, error) { panic("ouch") })
	calling(
		t,
		httpapi.TransportOptions{Base: base},
		nil,
		func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
			func() {
				defer func() {
					if up := recover(); up != "ouch" {
						t.Errorf("came up: %v", up)
					}
				}()
				body, err := get(t.Context(), c, url)
				t.Errorf("got %v, %v", body, err)
			}()
			a.used("after", 4, 0)
		},
	)
}

func TestTransportRefusals(t *testing.T) {
	t.Parallel()
	a := newCountingLimiter(t)
	base := roundTrips(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTeapot, Body: http.NoBody}, nil
	})
	wrong := &weir.Error{Code: weir.Invalid, Field: "model"}
	send := func(asked *weir.Request, failed error) (status int, closed bool, err error) {
		tr := httpapi.NewTransport(a, func(*http.Request) (*weir.Request, error) { return asked, failed },
			&httpapi.TransportOptions{Base: base})
		body := &closing{Reader: strings.NewReader("")}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host", body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return 0, body.closed, err
		}
		return resp.StatusCode, body.closed, resp.Body.Close()
	}
	if status, closed, err := send(nil, wrong); !errors.Is(err, wrong) || status != 0 || !closed {
		t.Errorf("a mistake: got %d, %v, body closed %v", status, err, closed)
	}
	a.fail["reserve"] = &weir.Error{Code: weir.Unavailable, Err: errGone}
	if status, closed, err := send(askFourUnits(), nil); !errors.Is(err, errGone) || status != 0 || !closed {
		t.Errorf("unavailable: got %d, %v, body closed %v", status, err, closed)
	}
	status, _, err := send(nil, nil)
	if err != nil || status != http.StatusTeapot || a.count("reserve") != 1 {
		t.Errorf("without a reservation: got %d, %v, %d reservations", status, err, a.count("reserve"))
	}
	a.used("after", 0, 0)
}

func TestTransportSettleFails(t *testing.T) {
	var told []error
	o := httpapi.TransportOptions{
		Actuals:      func(*http.Response, []byte) ([]weir.Costs, bool) { return []weir.Costs{{"unknown": 1}}, true },
		SettleFailed: func(_ *http.Request, err error) { told = append(told, err) },
	}
	calling(t, o, usingThree, func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
		for i, want := range []error{weir.Invalid, errGone} {
			if i == 1 {
				a.fail["complete"] = errGone
			}
			if err := readAndClose(got(t, c, url)); err != nil {
				t.Error(err)
			}
			if len(told) != i+1 || !errors.Is(told[i], want) {
				t.Errorf("got %v, want to be told of %v", told, want)
			}
		}
		a.used("after", 8, 1) // the second lease is live
	})
	told = nil
	o.Base = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no route")
	}}
	calling(t, o, nil, func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
		for range 2 {
			if _, err := get(t.Context(), c, url); err == nil {
				t.Error("got a response")
			}
			a.fail["cancel"] = errGone
		}
		if len(told) != 1 || !errors.Is(told[0], errGone) {
			t.Errorf("got %v, want to be told of the second alone", told)
		}
	})
}

// TestTransportSwitchingProtocols checks that the body of a connection that switches protocols is
// writable.
func TestTransportSwitchingProtocols(t *testing.T) {
	calling(
		t,
		httpapi.TransportOptions{Actuals: tokens},
		func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(
				conn,
				"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
			)
			line, _ := bufio.NewReader(conn).ReadString('\n')
			_, _ = io.WriteString(conn, line)
			_ = conn.Close()
		},
		func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			resp, err := c.Do(req) //nolint:bodyclose // By readAndClose.
			if err != nil {
				t.Fatal(err)
			}
			both, ok := resp.Body.(io.ReadWriteCloser)
			if !ok {
				t.Fatalf("got a body of type %T, want one to write to", resp.Body)
			}
			if _, err := io.WriteString(both, "used 2\n"); err != nil {
				t.Error(err)
			}
			a.used("meanwhile", 4, 1)
			if err := readAndClose(both); err != nil {
				t.Error(err)
			}
			a.used("after", 2, 0)
		},
	)
}

// TestTransportConcurrentRequests checks that concurrent requests settle their own leases.
func TestTransportConcurrentRequests(t *testing.T) {
	t.Parallel()
	a := newCountingLimiter(t)
	ask := func(*http.Request) (*weir.Request, error) {
		return &weir.Request{Entity: "a", Resource: "m", Costs: weir.Costs{"n": 1, "slots": 0}}, nil
	}
	tr := httpapi.NewTransport(a, ask, &httpapi.TransportOptions{
		Base: roundTrips(func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK,
				Request:    r,
				Body:       io.NopCloser(strings.NewReader("used 0")),
			}, nil
		}),
		Actuals: tokens,
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host", http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := tr.RoundTrip(req) //nolint:bodyclose // By readAndClose.
				if err != nil {
					t.Error(err)
					return
				}
				if err := readAndClose(resp.Body); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	a.used("after", 0, 0)
	if n := a.count("complete"); n != 400 {
		t.Errorf("completed %d, want 400", n)
	}
}
