package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// inPipe plays a test in a bubble, with a client of a server that is written by hand. Answer is told
// which attempt it is.
func inPipe(
	t *testing.T, o httpapi.ClientOptions, answer func(n int, w http.ResponseWriter, r *http.Request),
	play func(t *testing.T, c *httpapi.Client),
) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		net := overPipes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n++
			answer(n, w, r)
		}))
		o.HTTPClient = net.client
		c, err := httpapi.NewClient(net.url, &o)
		if err != nil {
			t.Fatal(err)
		}
		play(t, c)
		net.client.CloseIdleConnections()
		if err := errors.Join(c.Close(), net.close()); err != nil {
			t.Error(err)
		}
	})
}

func badGateway(w http.ResponseWriter) { http.Error(w, "bad gateway", http.StatusBadGateway) }

func admitRequest(t *testing.T, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Errorf("read: %v", err)
	}
	admitting(w, idIn(t, string(body)))
}

// hang answers nothing until the client has gone.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestRetries(t *testing.T) {
	tests := []struct {
		name        string
		options     httpapi.ClientOptions
		retryAfter  string // of answers with 503; otherwise they are 502
		fail        int    // attempts that fail; the next one is answered
		ok          bool
		least, most time.Duration
	}{
		{"at once", httpapi.ClientOptions{}, "", 0, true, 0, 0},
		{"after one", httpapi.ClientOptions{}, "", 1, true, 25 * time.Millisecond, 50 * time.Millisecond},
		{"after three", httpapi.ClientOptions{}, "", 3, true, 175 * time.Millisecond, 350 * time.Millisecond},
		{"never", httpapi.ClientOptions{}, "", 9, false, 175 * time.Millisecond, 350 * time.Millisecond},
		{"only one", httpapi.ClientOptions{Attempts: 1}, "", 9, false, 0, 0},
		{"pauses do not double for ever", httpapi.ClientOptions{Attempts: 12}, "", 11, true,
			(1575 + 5*1000) * time.Millisecond, (3150 + 5*2000) * time.Millisecond},
		{"a longer first pause", httpapi.ClientOptions{Backoff: 10 * time.Second}, "", 2, true, 10 * time.Second, 20 * time.Second},
		{"as the server asks", httpapi.ClientOptions{}, "3", 2, true, 6 * time.Second, 6 * time.Second},
		{"not for as long as the server asks", httpapi.ClientOptions{Timeout: time.Second}, "3600", 2, true,
			2 * time.Second, 2 * time.Second},
		{"no date", httpapi.ClientOptions{}, "tomorrow", 1, true, 25 * time.Millisecond, 50 * time.Millisecond},
		{"not in the past", httpapi.ClientOptions{}, "-5", 1, true, 25 * time.Millisecond, 50 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			attempts := 0
			inPipe(t, test.options, func(n int, w http.ResponseWriter, r *http.Request) {
				switch attempts = n; {
				case n > test.fail:
					admitRequest(t, w, r)
				case test.retryAfter != "":
					w.Header().Set("Retry-After", test.retryAfter)
					http.Error(w, "too busy", http.StatusServiceUnavailable)
				default:
					badGateway(w)
				}
			}, func(t *testing.T, c *httpapi.Client) {
				began := time.Now()
				_, err := c.Reserve(t.Context(), &plainRequest)
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("took %v, want from %v to %v", took, test.least, test.most)
				}
				if (err == nil) != test.ok {
					t.Errorf("got %v", err)
				}
				if !test.ok {
					expectUnavailable(t, "reserve", err)
				}
			})
			want := test.fail + 1
			if !test.ok {
				want = max(1, test.options.Attempts)
				if test.options.Attempts == 0 {
					want = 4
				}
			}
			if attempts != want {
				t.Errorf("got %d attempts, want %d", attempts, want)
			}
		})
	}
}

func TestAttemptsTimeOut(t *testing.T) {
	inPipe(t, httpapi.ClientOptions{Attempts: 3, Timeout: 2 * time.Second},
		func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 1:
				hang(r)
			case 2: // it begins to answer
				w.Header().Set("Content-Type", jsonType)
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				hang(r)
			default:
				admitRequest(t, w, r)
			}
		},
		func(t *testing.T, c *httpapi.Client) {
			began := time.Now()
			if _, err := c.Reserve(t.Context(), &plainRequest); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < 4*time.Second || took > 4150*time.Millisecond {
				t.Errorf("took %v, want two timeouts of 2s and two short pauses", took)
			}
		})
}

// The caller hears what happened within nine tenths of its deadline.
func TestDeadlines(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		most   time.Duration
	}{
		"a server that hangs":       {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, 900 * time.Millisecond},
		"a pause that is too long":  {func(w http.ResponseWriter, _ *http.Request) { badGateway(w) }, 0},
		"a server that asks for it": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "1"); w.WriteHeader(503) }, 0},
	} {
		for _, policy := range []weir.Policy{weir.Block, weir.Allow} {
			t.Run(name+", "+string(policy), func(t *testing.T) {
				inPipe(t, httpapi.ClientOptions{Backoff: 2 * time.Second, OnUnavailable: policy},
					func(_ int, w http.ResponseWriter, r *http.Request) { test.answer(w, r) },
					func(t *testing.T, c *httpapi.Client) {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						began := time.Now()
						lease, err := c.Reserve(ctx, &plainRequest)
						if took := time.Since(began); took != test.most {
							t.Errorf("took %v, want %v", took, test.most)
						}
						if policy == weir.Block {
							expectUnavailable(t, "reserve", err)
						} else if err != nil || !lease.Degraded {
							t.Errorf("got %+v, %v, want a degraded lease: the caller is still there", lease, err)
						}
					})
			})
		}
	}
}

// Whoever has hung up gets no lease, not even a degraded one, and is not kept waiting.
func TestCallerGone(t *testing.T) {
	for name, when := range map[string]time.Duration{"before": 0, "in an attempt": time.Second, "in a pause": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			inPipe(t, httpapi.ClientOptions{Timeout: 2 * time.Second, Backoff: time.Minute, OnUnavailable: weir.Allow},
				func(n int, _ http.ResponseWriter, r *http.Request) {
					attempts = n
					hang(r)
				},
				func(t *testing.T, c *httpapi.Client) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if when == 0 {
						cancel()
					}
					time.AfterFunc(when, cancel)
					began := time.Now()
					lease, err := c.Reserve(ctx, &plainRequest)
					expectUnavailable(t, "reserve", err)
					if lease != nil || !errors.Is(err, context.Canceled) {
						t.Errorf("got %+v, %v, want no lease and the context's error", lease, err)
					}
					if took := time.Since(began); took != when {
						t.Errorf("took %v, want %v", took, when)
					}
					if want := min(1, int(when)); attempts != want {
						t.Errorf("got %d attempts, want %d", attempts, want)
					}
				})
		})
	}
}

// A settlement that was lost is repeated as it was.
func TestSettlementRepeated(t *testing.T) {
	var bodies []string
	inPipe(t, httpapi.ClientOptions{}, func(n int, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if n < 3 {
			badGateway(w)
			return
		}
		w.Header().Set("Content-Type", jsonType)
		_, _ = io.WriteString(w, `{"lease_id":"`+idIn(t, string(body))+`","at_unix_ms":1750248000001}`)
	}, func(t *testing.T, c *httpapi.Client) {
		id := weir.NewLeaseID(time.Now())
		r, err := c.Complete(t.Context(), id, []weir.Costs{{"n": 3}, nil})
		if err != nil {
			t.Fatal(err)
		}
		want := weir.Receipt{LeaseID: id, At: time.UnixMilli(1750248000001).UTC()}
		if *r != want {
			t.Errorf("got %+v, want %+v", *r, want)
		}
	})
	expectAttempts(t, bodies, 3)
	if want := `,"actuals":[{"n":3},{}]}`; len(bodies) > 0 && bodies[0][len(bodies[0])-len(want):] != want {
		t.Errorf("sent %s, want it to end with %s", bodies[0], want)
	}
}
