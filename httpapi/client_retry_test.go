package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// inPipe runs a test in a bubble, with a client of a stub server. The function answer gets the
// number of the attempt. The client sends nothing after a call unless the options say otherwise.
func inPipe(
	t *testing.T, o httpapi.ClientOptions, answer func(n int, w http.ResponseWriter, r *http.Request),
	play func(t *testing.T, c *httpapi.Client),
) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		net := overPipes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer(int(n.Add(1)), w, r)
		}))
		o.HTTPClient = net.client
		if o.CancelFor == 0 {
			o.CancelFor = -1
		}
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

// hang does not answer until the client has hung up.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// retryCase is a server that fails some attempts, and the expected result of a reservation.
type retryCase struct {
	name       string
	options    httpapi.ClientOptions
	retryAfter string // of answers with 503; otherwise they are 502
	fail       int    // attempts that fail; the next one is answered
	attempts   int
	least      time.Duration
	most       time.Duration
}

func retryCases() []retryCase {
	const ms = time.Millisecond
	none, hundred := httpapi.ClientOptions{}, httpapi.ClientOptions{Attempts: 100}
	ten, brief := httpapi.ClientOptions{Backoff: 10 * time.Second}, httpapi.ClientOptions{Timeout: time.Second}
	return []retryCase{
		{"at once", none, "", 0, 1, 0, 0},
		{"after one", none, "", 1, 2, 25 * ms, 50 * ms},
		{"after three", none, "", 3, 4, 175 * ms, 350 * ms},
		{"never", none, "", 9, 4, 175 * ms, 350 * ms},
		{"only one", httpapi.ClientOptions{Attempts: 1}, "", 9, 1, 0, 0},
		{"pauses do not double for ever", hundred, "", 99, 100, (1575 + 93*1000) * ms, (3150 + 93*2000) * ms},
		{"a longer first pause", ten, "", 2, 3, 10 * time.Second, 20 * time.Second},
		{"as the server asks", none, "3", 2, 3, 6 * time.Second, 6 * time.Second},
		{"not for as long as the server asks", brief, "3600", 2, 3, 2 * time.Second, 2 * time.Second},
		{"no number", none, "tomorrow", 1, 2, 25 * ms, 50 * ms},
		{"not in the past", none, "-5", 1, 2, 25 * ms, 50 * ms},
	}
}

func TestRetries(t *testing.T) {
	for _, test := range retryCases() {
		t.Run(test.name, func(t *testing.T) {
			var attempts atomic.Int64
			answer := func(n int, w http.ResponseWriter, r *http.Request) {
				attempts.Store(int64(n))
				switch {
				case n > test.fail:
					admitRequest(t, w, r)
				case test.retryAfter != "":
					w.Header().Set("Retry-After", test.retryAfter)
					http.Error(w, "too busy", http.StatusServiceUnavailable)
				default:
					badGateway(w)
				}
			}
			inPipe(t, test.options, answer, func(t *testing.T, c *httpapi.Client) {
				began := time.Now()
				_, err := c.Reserve(t.Context(), &plainRequest)
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("took %v, want from %v to %v", took, test.least, test.most)
				}
				if test.attempts > test.fail {
					if err != nil {
						t.Errorf("got %v", err)
					}
				} else {
					expectUnavailable(t, "reserve", err)
				}
			})
			if got := int(attempts.Load()); got != test.attempts {
				t.Errorf("got %d attempts, want %d", got, test.attempts)
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
			case 2: // the server starts to answer
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

// TestDeadlines checks that the caller gets the result within nine tenths of its deadline.
func TestDeadlines(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		most   time.Duration
	}{
		"a server that hangs":      {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, 900 * time.Millisecond},
		"a pause that is too long": {func(w http.ResponseWriter, _ *http.Request) { badGateway(w) }, 0},
		"a server that asks for it": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 0},
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

// TestCallerLeaves checks that a caller that has hung up gets no lease, not even a degraded one,
// and does not wait.
func TestCallerLeaves(t *testing.T) {
	o := httpapi.ClientOptions{
		Timeout: 2 * time.Second, Backoff: time.Minute, OnUnavailable: weir.Allow,
	}
	for name, when := range map[string]time.Duration{
		"before": 0, "in an attempt": time.Second, "in a pause": 3 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			var attempts atomic.Int64
			answer := func(n int, _ http.ResponseWriter, r *http.Request) {
				attempts.Store(int64(n))
				hang(r)
			}
			inPipe(t, o, answer, func(t *testing.T, c *httpapi.Client) {
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
				if got, want := attempts.Load(), min(1, int64(when)); got != want {
					t.Errorf("got %d attempts, want %d", got, want)
				}
			})
		})
	}
}

// TestSettlementRepeated checks that a lost settlement is repeated unchanged.
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
	if want := `,"actuals":[{"n":3},{}]}`; len(bodies) > 0 &&
		bodies[0][len(bodies[0])-len(want):] != want {
		t.Errorf("sent %s, want it to end with %s", bodies[0], want)
	}
}

// TestTimeoutOfTheHTTPClient checks that the client obeys the settings of the caller's HTTP client.
func TestTimeoutOfTheHTTPClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := overPipes(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hang(r) }))
		net.client.Timeout = time.Second
		c, err := httpapi.NewClient(net.url, &httpapi.ClientOptions{HTTPClient: net.client, Attempts: 2})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = c.Reserve(t.Context(), &plainRequest)
		expectUnavailable(t, "reserve", err)
		if took := time.Since(began); took < 2*time.Second || took > 2050*time.Millisecond {
			t.Errorf("took %v, want two timeouts of a second", took)
		}
		if err := errors.Join(c.Close(), net.close()); err != nil {
			t.Error(err)
		}
	})
}

// TestOverloaded checks the retries after a server was too busy, in which case it has done nothing.
// The client waits for the Retry-After. Its error in the end is definite unless an earlier attempt
// had no answer. No policy turns the error into a degraded lease, because then a flood of requests
// would disable every limit.
func TestOverloaded(t *testing.T) {
	for _, test := range []struct {
		name  string
		lost  int // attempts without an answer, at first
		busy  int // attempts that are refused after them
		want  error
		least time.Duration
	}{
		{"once", 0, 1, nil, 3 * time.Second},
		{"always", 0, 9, weir.Overloaded, 9 * time.Second},
		{"after a lost answer", 1, 9, weir.Unavailable, 6 * time.Second},
	} {
		for _, policy := range []weir.Policy{weir.Block, weir.Allow} {
			t.Run(test.name+", "+string(policy), func(t *testing.T) {
				answer := func(n int, w http.ResponseWriter, r *http.Request) {
					switch {
					case n <= test.lost:
						badGateway(w)
					case n <= test.lost+test.busy:
						w.Header().Set("Content-Type", problemType)
						w.Header().Set("Retry-After", "3")
						w.WriteHeader(http.StatusServiceUnavailable)
						_, _ = io.WriteString(w, `{"status":503,"code":"overloaded","reason":"too many"}`)
					default:
						admitRequest(t, w, r)
					}
				}
				inPipe(t, httpapi.ClientOptions{OnUnavailable: policy}, answer,
					func(t *testing.T, c *httpapi.Client) {
						began := time.Now()
						lease, err := c.Reserve(t.Context(), &plainRequest)
						if took := time.Since(began); took < test.least || took > test.least+time.Second {
							t.Errorf("took %v, want %v and little more", took, test.least)
						}
						degrades := policy == weir.Allow && errors.Is(test.want, weir.Unavailable)
						switch {
						case test.want == nil || degrades:
							if err != nil || lease.Degraded != degrades {
								t.Errorf("got %+v, %v, want a lease, degraded %v", lease, err, degrades)
							}
						case !errors.Is(err, test.want):
							t.Errorf("got %+v, %v, want %v", lease, err, test.want)
						}
						e, ok := errors.AsType[*weir.Error](err)
						if ok && e.Code == weir.Overloaded && e.RetryAfter != 3*time.Second {
							t.Errorf("got a retry-after of %v, want 3s", e.RetryAfter)
						}
					})
			})
		}
	}
}
