package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// calling runs a test in a bubble, with a client that reserves around its calls of an upstream.
func calling(
	t *testing.T, o httpapi.TransportOptions, upstream http.HandlerFunc,
	play func(t *testing.T, a *countingLimiter, c *http.Client, url string),
) {
	synctest.Test(t, func(t *testing.T) {
		a := newCountingLimiter(t)
		net := overPipes(t, upstream)
		if o.Base == nil {
			o.Base = net.client.Transport
		}
		c := &http.Client{Transport: httpapi.NewTransport(a, askFour, &o)}
		a.used("before", 0, 0)
		play(t, a, c, net.url)
		c.CloseIdleConnections()
		net.client.CloseIdleConnections()
		if err := net.close(); err != nil {
			t.Error(err)
		}
		synctest.Wait() // a goroutine left in the bubble fails the test
	})
}

// tokens reads the used units from the last line of a body.
func tokens(_ *http.Response, tail []byte) ([]weir.Costs, bool) {
	var n int64
	lines := strings.Split(strings.TrimSpace(string(tail)), "\n")
	if _, err := fmt.Sscanf(lines[len(lines)-1], "used %d", &n); err != nil {
		return nil, false
	}
	return []weir.Costs{{"n": n}}, true
}

func usingThree(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "hello\n")
	_ = http.NewResponseController(w).Flush()
	_, _ = io.WriteString(w, "used 3\n")
}

// get returns the body of an answer.
func get(ctx context.Context, c *http.Client, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// got is [get] for a request that must succeed.
func got(t *testing.T, c *http.Client, url string) io.ReadCloser {
	t.Helper()
	body, err := get(t.Context(), c, url)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestTransportSettles(t *testing.T) {
	known := httpapi.TransportOptions{Actuals: tokens}
	shortTail, shorterTail := known, known
	shortTail.Tail, shorterTail.Tail = 7, 3
	for _, test := range []struct {
		name    string
		options httpapi.TransportOptions
		read    func(body io.ReadCloser) error
		used    int64
	}{
		{"read and closed", known, readAndClose, 3},
		{"nothing is known", httpapi.TransportOptions{}, readAndClose, 4},
		{"read to its end", known, func(body io.ReadCloser) error {
			_, err := io.ReadAll(body)
			synctest.Wait() // the settlement does not wait for Close
			return err
		}, 3},
		{"closed unread", known, io.ReadCloser.Close, 4},
		{"closed early", known, func(body io.ReadCloser) error {
			_, err := io.ReadFull(body, make([]byte, 3))
			return errors.Join(err, body.Close())
		}, 4},
		{"closed twice", known, func(body io.ReadCloser) error {
			return errors.Join(readAndClose(body), body.Close())
		}, 3},
		{"a short tail", shortTail, readAndClose, 3},
		{"a tail that is too short", shorterTail, readAndClose, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			play := func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
				body := got(t, c, url)
				a.used("meanwhile", 4, 1)
				if err := test.read(body); err != nil {
					t.Error(err)
				}
				a.used("after", test.used, 0)
				_ = body.Close()
			}
			calling(t, test.options, usingThree, play)
		})
	}
}

// TestTransportActuals checks that Actuals gets the whole response except the body.
func TestTransportActuals(t *testing.T) {
	for _, test := range []struct {
		name     string
		upstream http.HandlerFunc
		actuals  func(resp *http.Response, tail []byte) ([]weir.Costs, bool)
		used     int64
	}{
		{
			"nothing in it",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
			func(resp *http.Response, tail []byte) ([]weir.Costs, bool) {
				return []weir.Costs{{"n": 1}}, resp.StatusCode == http.StatusNoContent && len(tail) == 0
			}, 1,
		},
		{
			"an error of the upstream",
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) },
			func(resp *http.Response, _ []byte) ([]weir.Costs, bool) {
				return []weir.Costs{{"n": 0}}, resp.StatusCode >= 400
			}, 0,
		},
		{
			"an overrun",
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "used 25") },
			tokens, 25,
		},
		{
			"a trailer",
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "hello")
				_ = http.NewResponseController(w).Flush()
				w.Header().Set(http.TrailerPrefix+"Used", "xx") // a trailer that was not announced
			},
			func(resp *http.Response, _ []byte) ([]weir.Costs, bool) {
				return []weir.Costs{{"n": int64(len(resp.Trailer.Get("Used")))}}, true
			}, 2,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			play := func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
				if err := readAndClose(got(t, c, url)); err != nil {
					t.Error(err)
				}
				a.used("after", test.used, 0)
			}
			calling(t, httpapi.TransportOptions{Actuals: test.actuals}, test.upstream, play)
		})
	}
}

// TestTransportEmptyBodies checks that a response with an empty body is settled even if the caller
// does not close it.
func TestTransportEmptyBodies(t *testing.T) {
	upstream := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	calling(
		t,
		httpapi.TransportOptions{},
		upstream,
		func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
			body := got(t, c, url)
			synctest.Wait()
			a.used("after", 4, 0)
			_ = body.Close()
		},
	)
}

func readAndClose(body io.ReadCloser) error {
	_, err := io.ReadAll(body)
	return errors.Join(err, body.Close())
}

func TestTransportDenied(t *testing.T) {
	calls := 0
	calling(t, httpapi.TransportOptions{}, func(http.ResponseWriter, *http.Request) { calls++ },
		func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
			for i := range 3 {
				body := &closing{Reader: strings.NewReader("hello")}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := c.Do(req)
				if i < 2 {
					if err != nil {
						t.Fatal(err)
					}
					_ = resp.Body.Close()
					continue
				}
				denied, ok := errors.AsType[*weir.DeniedError](err)
				if !ok || denied.RetryAfter != time.Hour {
					t.Errorf("got %v, want denied for an hour", err)
				}
				if !body.closed {
					t.Error("the request's body was left open")
				}
			}
			a.used("after", 8, 0)
		})
	if calls != 2 {
		t.Errorf("%d requests were sent, want 2", calls)
	}
}

type closing struct {
	io.Reader

	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestTransportWaits(t *testing.T) {
	options := httpapi.TransportOptions{Wait: &weir.WaitOptions{}}
	calling(t, options, usingThree, func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
		began := time.Now()
		for range 3 {
			if err := readAndClose(got(t, c, url)); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+2*time.Second {
			t.Errorf("took %v, want to wait an hour for the first to return", took)
		}
		a.used("after", 4, 0)
		if err := readAndClose(got(t, c, url)); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := get(ctx, c, url)
		if _, ok := errors.AsType[*weir.DeniedError](
			err,
		); !ok ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error and the denial", err)
		}
		a.used("after", 8, 0)
	})
}

// TestTransportExtends checks that the slot of a request does not time out while its response is
// read.
func TestTransportExtends(t *testing.T) {
	calling(
		t,
		httpapi.TransportOptions{Actuals: tokens},
		func(w http.ResponseWriter, r *http.Request) {
			for range 600 {
				_, _ = io.WriteString(w, "data\n")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Second) // in a bubble
			}
			usingThree(w, r)
		},
		func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
			body := got(t, c, url)
			if _, err := io.ReadFull(body, make([]byte, 5*500)); err != nil {
				t.Fatal(err)
			}
			a.used("after eight minutes", 4, 1)
			if n := a.count("extend"); n < 16 {
				t.Errorf("extended %d times in eight minutes, want often", n)
			}
			if err := readAndClose(body); err != nil {
				t.Error(err)
			}
			a.used("after", 3, 0)
			n := a.count("extend")
			time.Sleep(time.Hour) // in a bubble
			if more := a.count("extend") - n; more > 0 {
				t.Errorf("extended %d times after the end", more)
			}
		},
	)
}

// TestTransportContextEnds checks that the end of the context settles the lease, whether or not the
// body is closed.
func TestTransportContextEnds(t *testing.T) {
	upstream := func(w http.ResponseWriter, r *http.Request) {
		usingThree(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, reads := range map[string]bool{"unread": false, "while it is read": true} {
		t.Run(name, func(t *testing.T) {
			play := func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				body, err := get(ctx, c, url)
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(time.Second, cancel)
				if reads {
					if _, err := io.ReadAll(body); !errors.Is(err, context.Canceled) {
						t.Errorf("got %v, want the context's error", err)
					}
				}
				time.Sleep(2 * time.Second) // in a bubble
				a.used("after", map[bool]int64{false: 4, true: 3}[reads], 0)
			}
			calling(t, httpapi.TransportOptions{Actuals: tokens}, upstream, play)
		})
	}
}

// TestTransportTail checks that the tail is exactly the end of what was read.
func TestTransportTail(t *testing.T) {
	whole := make([]byte, 300_000)
	for i := range whole {
		whole[i] = byte(i * 7 % 251)
	}
	upstream := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(whole) }
	for _, size := range []int{0, 1, 1000, 100_000, 300_000, 400_000} {
		want := size
		if size == 0 {
			want = 64 << 10
		}
		want = min(want, len(whole))
		var kept []byte
		actuals := func(resp *http.Response, tail []byte) ([]weir.Costs, bool) {
			kept = bytes.Clone(tail)
			if n, err := resp.Body.Read(make([]byte, 1)); n > 0 || err != io.EOF {
				t.Errorf("the response that Actuals sees has a body: %d, %v", n, err)
			}
			return nil, false
		}
		play := func(t *testing.T, _ *countingLimiter, c *http.Client, url string) {
			body := got(t, c, url)
			var read bytes.Buffer
			_, err := io.CopyBuffer(&read, struct{ io.Reader }{body}, make([]byte, 777))
			if err := errors.Join(err, body.Close()); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(read.Bytes(), whole) {
				t.Error("the reader got something else")
			}
		}
		calling(t, httpapi.TransportOptions{Tail: size, Actuals: actuals}, upstream, play)
		if !bytes.Equal(kept, whole[len(whole)-want:]) {
			t.Errorf("tail of %d: got %d bytes, want the last %d", size, len(kept), want)
		}
	}
}

// TestTransportKeepsTheRequestUnchanged checks that the transport does not change the caller's
// request.
func TestTransportKeepsTheRequestUnchanged(t *testing.T) {
	calling(
		t,
		httpapi.TransportOptions{},
		usingThree,
		func(t *testing.T, a *countingLimiter, c *http.Client, url string) {
			req, err := http.NewRequestWithContext(
				t.Context(),
				http.MethodPost,
				url,
				strings.NewReader("hello"),
			)
			if err != nil {
				t.Fatal(err)
			}
			before := *req
			headers := req.Header.Clone()
			resp, err := c.Transport.RoundTrip(req) //nolint:bodyclose // By readAndClose.
			if err != nil {
				t.Fatal(err)
			}
			if err := readAndClose(resp.Body); err != nil {
				t.Error(err)
			}
			if resp.Request != req || req.Context() != before.Context() ||
				!reflect.DeepEqual(req.Header, headers) ||
				req.Body != before.Body {
				t.Errorf("got %+v, was %+v", req, before)
			}
			a.used("after", 4, 0)
		},
	)
}
