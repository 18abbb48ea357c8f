package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// brokenAnswer is an answer to a reservation that weir never gives.
type brokenAnswer struct {
	name   string
	status int
	media  string
	body   string // ID stands for the lease's
}

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	otherID     = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
)

// The answers below are made from these.
const (
	rightLease  = `{"allowed":true,"lease_id":"ID","reserved_at_unix_ms":1750248000000,"limits":[]}`
	rightLimits = `"limits":[{"entity":"a","resource":"m","limit":"n","kind":"bucket","exceeded":true}]`
	rightDenial = `{"status":429,"allowed":false,"lease_id":"ID","retry_after_ms":1000,` + rightLimits + `}`
)

// not returns an answer with a part replaced.
func not(right, part, by string) string { return strings.Replace(right, part, by, 1) }

func brokenAnswers() []brokenAnswer {
	answers := slices.Concat(brokenLeases(), brokenDenials(), brokenProblems())
	for _, status := range []int{402, 418, 500, 501, 502, 503, 504, 507, 599} {
		answers = append(answers, brokenAnswer{fmt.Sprint(status), status, "text/html", "<html></html>"})
	}
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		answers = append(answers, brokenAnswer{fmt.Sprint(status), status, "", ""})
	}
	return answers
}

func brokenLeases() []brokenAnswer {
	const lease = rightLease
	return []brokenAnswer{
		{"nothing", 200, jsonType, ""},
		{"an empty object", 200, jsonType, "{}"},
		{"null", 200, jsonType, "null"},
		{"an array", 200, jsonType, "[" + lease + "]"},
		{"half of it", 200, jsonType, lease[:len(lease)/2]},
		{"something behind it", 200, jsonType, lease + "}"},
		{"another type", 200, "text/html", lease},
		{"no type", 200, "", lease},
		{"not allowed", 200, jsonType, not(lease, "true", "false")},
		{"allowed left out", 200, jsonType, not(lease, `"allowed":true,`, "")},
		{"allowed in words", 200, jsonType, not(lease, "true", `"true"`)},
		{"another lease", 200, jsonType, not(lease, "ID", otherID)},
		{"a lease that is not a ULID", 200, jsonType, not(lease, "ID", "1")},
		{"no lease", 200, jsonType, not(lease, `"lease_id":"ID",`, "")},
		{"no instant", 200, jsonType, not(lease, "1750248000000", "0")},
		{"no limits", 200, jsonType, not(lease, `,"limits":[]`, "")},
		{"a denial with 200", 200, jsonType, rightDenial},
		{"a lease with 201", 201, jsonType, lease},
		{"a lease with 202", 202, jsonType, lease},
		{"no content", 204, jsonType, ""},
		{"a lease with 429", 429, jsonType, lease},
		{"a lease as a problem", 429, problemType, lease},
		{"more than a megabyte", 200, jsonType, lease + strings.Repeat(" ", 1<<20)},
	}
}

func brokenDenials() []brokenAnswer {
	const denial = rightDenial
	return []brokenAnswer{
		{"a proxy's 429", 429, "text/html", "<html>Too Many Requests</html>"},
		{"another API's 429", 429, jsonType, `{"error":"rate_limited"}`},
		{"another API's problem", 429, problemType, `{"type":"about:blank","status":429}`},
		{"a denial that is allowed", 429, problemType, not(denial, "false", "true")},
		{"a denial without a word", 429, problemType, not(denial, `"allowed":false,`, "")},
		{"a denial without a wait", 429, problemType, not(denial, `"retry_after_ms":1000,`, "")},
		{"a denial without limits", 429, problemType, not(denial, rightLimits, `"x":1`)},
		{"a denial of another lease", 429, problemType, not(denial, "ID", otherID)},
		{"a denial with a wait below zero", 429, problemType, not(denial, `_ms":1000`, `_ms":-5`)},
		{"a limit with a wait below zero", 429, problemType,
			not(denial, `"exceeded":true`, `"exceeded":true,"retry_after_ms":-1`)},
		{"a denial that is no problem", 429, jsonType, denial},
		{"a denial that says 200 of itself", 429, problemType, not(denial, "429", "200")},
		{"a denial with 400", 400, problemType, not(denial, "429", "400")},
		{"a denial with 503", 503, problemType, not(denial, "429", "503")},
		{"a denial that is cut off", 429, problemType, denial[:len(denial)-2]},
	}
}

func brokenProblems() []brokenAnswer {
	const lost = `{"status":400,"code":"invalid","field":"body","reason":"did not come to its end"}`
	return []brokenAnswer{
		{"a proxy's 404", 404, "text/html", "<html>Not Found</html>"},
		{"another API's 404", 404, jsonType, `{"error":"no such route"}`},
		{"a proxy's 400", 400, "text/plain", "bad request"},
		{"408", 408, problemType, `{"status":408,"code":"invalid","field":"body"}`},
		{"an incomplete body", 400, problemType, lost},
		{"a problem without a code", 400, problemType, `{"status":400}`},
		{"a problem without a status", 400, problemType, `{"code":"invalid"}`},
		{"a problem that is cut off", 400, problemType, `{"status":400,"code":"inv`},
		{"unavailable with 400", 400, problemType, `{"status":400,"code":"unavailable"}`},
		{"conflict with 400", 400, problemType, `{"status":400,"code":"conflict"}`},
		{"invalid with 500", 500, problemType, `{"status":500,"code":"invalid"}`},
		{"invalid with 503", 503, problemType, `{"status":503,"code":"invalid"}`},
		{"a code of its own with 500", 500, problemType, `{"status":500,"code":"no idea"}`},
		{"a failure of the server", 500, problemType, `{"status":500,"code":"unavailable"}`},
	}
}

// TestBrokenAnswers checks that an answer that weir never gives is repeated with the same lease ID,
// and in the end is neither an admission nor a denial.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range brokenAnswers() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(_ int, w http.ResponseWriter, body string) {
				w.Header()["Content-Type"] = nil
				if test.media != "" {
					w.Header().Set("Content-Type", test.media)
				}
				w.Header().Set("Location", "/v1/elsewhere")
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(strings.ReplaceAll(test.body, "ID", idIn(t, body))))
			})
			c := s.client(t, httpapi.ClientOptions{Attempts: 3, Timeout: time.Minute})
			lease, err := c.Reserve(t.Context(), &plainRequest)
			expectUnavailable(t, "reserve", err)
			if lease != nil {
				t.Errorf("got lease %+v with the error", lease)
			}
			expectAttempts(t, s.sent(), 3)
			e, ok := errors.AsType[*weir.Error](err)
			if sent := idIn(t, s.sent()[0]); !ok || e.Field != "lease_id" || e.Value != sent {
				t.Errorf("got %+v, want the lease ID to repeat with, %s", e, sent)
			}
			if errors.Unwrap(e) == nil {
				t.Error("the error has no cause")
			}
		})
	}
}

// TestWrongMediaType checks that the error about an answer of another type names the header.
func TestWrongMediaType(t *testing.T) {
	t.Parallel()
	for media, want := range map[string]string{
		"":          "the answer 200 OK has no Content-Type header, which must be application/json",
		"text/html": `the answer 200 OK has the Content-Type header "text/html", not application/json`,
	} {
		s := newStub(t, func(_ int, w http.ResponseWriter, body string) {
			w.Header()["Content-Type"] = nil
			if media != "" {
				w.Header().Set("Content-Type", media)
			}
			_, _ = w.Write([]byte(strings.ReplaceAll(rightLease, "ID", idIn(t, body))))
		})
		c := s.client(t, httpapi.ClientOptions{Attempts: 1, Timeout: time.Minute})
		_, err := c.Reserve(t.Context(), &plainRequest)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", media, err, want)
		}
	}
}

// TestDenialWithoutLeaseID checks that a denial need not name the lease, because the lease holds
// nothing.
func TestDenialWithoutLeaseID(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(_ int, w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", problemType)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(not(rightDenial, `"lease_id":"ID",`, "")))
	})
	c := s.client(t, httpapi.ClientOptions{Attempts: 3, Timeout: time.Minute})
	_, err := c.Reserve(t.Context(), &plainRequest)
	denied, ok := errors.AsType[*weir.DeniedError](err)
	if !ok || denied.RetryAfter != time.Second || denied.LeaseID.String() != idIn(t, s.sent()[0]) {
		t.Errorf("got %v, want a denial of the lease that was asked for", err)
	}
	expectAttempts(t, s.sent(), 1)
}

// expectAttempts checks that the same body was sent want times.
func expectAttempts(t *testing.T, bodies []string, want int) {
	t.Helper()
	if len(bodies) != want {
		t.Errorf("got %d attempts, want %d", len(bodies), want)
	}
	for _, body := range bodies {
		if body != bodies[0] {
			t.Errorf("an attempt sent %s, the first sent %s", body, bodies[0])
		}
	}
}

// TestBrokenAnswersToVerbs does the same for updates and queries.
func TestBrokenAnswersToVerbs(t *testing.T) {
	t.Parallel()
	const receipt = `{"lease_id":"ID","at_unix_ms":1750248000000}`
	for _, test := range []brokenAnswer{
		{"an empty object", 200, jsonType, "{}"},
		{"no JSON", 200, jsonType, "ok"},
		{"another lease", 200, jsonType, strings.Replace(receipt, "ID", otherID, 1)},
		{"no instant", 200, jsonType, `{"lease_id":"ID"}`},
		{"another type", 200, "text/plain", receipt},
		{"a denial", 429, problemType, `{"status":429,"allowed":false,"lease_id":"ID","retry_after_ms":1,"limits":[]}`},
		{"unavailable", 503, problemType, `{"status":503,"code":"unavailable"}`},
		{"a page", 502, "text/html", "<html></html>"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(_ int, w http.ResponseWriter, body string) {
				id := ""
				if strings.Contains(body, "lease_id") {
					id = idIn(t, body)
				}
				w.Header().Set("Content-Type", test.media)
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(strings.ReplaceAll(test.body, "ID", id)))
			})
			c := s.client(t, httpapi.ClientOptions{Attempts: 2})
			ctx, id := t.Context(), weir.NewLeaseID(time.Now())
			for name, call := range map[string]func() error{
				"adjust":   func() error { _, err := c.Adjust(ctx, id, 1, nil); return err },
				"complete": func() error { _, err := c.Complete(ctx, id, nil); return err },
				"cancel":   func() error { _, err := c.Cancel(ctx, id); return err },
				"extend":   func() error { _, err := c.Extend(ctx, id); return err },
				"status":   func() error { _, err := c.Status(ctx, "a", "m"); return err },
				"explain":  func() error { _, err := c.Explain(ctx, "a", "m"); return err },
				"capacity": func() error { _, err := c.Capacity(ctx, "m"); return err },
				"activity": func() error { _, err := c.Activity(ctx); return err },
				"limits":   func() error { _, err := c.Limits(ctx, weir.Subject{}); return err },
				"policy":   func() error { _, err := c.Policy(ctx); return err },
				"entity":   func() error { _, err := c.Entity(ctx, "a"); return err },
				"entities": func() error { _, err := c.Entities(ctx, nil); return err },
				"set limits": func() error {
					return c.SetLimits(ctx, weir.Subject{}, []weir.Limit{{Name: "n", Capacity: 1}})
				},
				"set policy":    func() error { return c.SetPolicy(ctx, weir.Block) },
				"set entity":    func() error { return c.SetEntity(ctx, "a", "", false) },
				"delete entity": func() error { return c.DeleteEntity(ctx, "a") },
			} {
				before := len(s.sent())
				expectUnavailable(t, name, call())
				expectAttempts(t, s.sent()[before:], 2)
			}
			before := len(s.sent())
			expectUnavailable(t, "ready", c.Ready(ctx))
			expectAttempts(t, s.sent()[before:], 1)
		})
	}
}

// TestNewerServer checks that the client ignores unknown fields, which a newer server may send.
func TestNewerServer(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(n int, w http.ResponseWriter, body string) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		switch n {
		case 1:
			_, _ = fmt.Fprintf(
				w,
				`{"allowed":true,"lease_id":%q,"reserved_at_unix_ms":1750248000000,"mood":"fine",
				"limits":[{"entity":"a","limit":"n","kind":"leaky","phase":{"moon":1}}]}`,
				idIn(t, body),
			)
		case 2:
			_, _ = w.Write([]byte(`{"entity":"a","resource":"m","level":"galaxy","limits":{
				"n":{"kind":"leaky","capacity":3,"refill_period":0.25,"leak":9}},"x":[]}`))
		case 3:
			w.Header().Set("Content-Type", problemType)
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(`{"status":418,"code":"out of tea","field":"cup","reason":"is empty"}`))
		default:
			w.Header().Set("Content-Type", problemType)
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status":404,"code":"no cup"}`))
		}
	})
	c := s.client(t, httpapi.ClientOptions{})
	lease, err := c.Reserve(t.Context(), &plainRequest)
	if err != nil || lease.Limits[0].Kind != "leaky" {
		t.Errorf("reserve: got %+v, %v", lease, err)
	}
	e, err := c.Explain(t.Context(), "a", "m")
	if err != nil {
		t.Fatal(err)
	}
	want := weir.Limit{Name: "n", Kind: "leaky", Capacity: 3, RefillPeriod: time.Second / 4}
	if len(e.Limits) != 1 || e.Limits[0] != want || e.Level != "galaxy" {
		t.Errorf("explain: got %+v", e)
	}
	_, err = c.Cancel(t.Context(), lease.ID)
	if !errors.Is(err, weir.Code("out of tea")) {
		t.Errorf("cancel: got %v, want the server's code", err)
	}
	_, err = c.Extend(t.Context(), lease.ID)
	if !errors.Is(err, weir.Code("no cup")) {
		t.Errorf("extend: got %v, want the server's code", err)
	}
	expectAttempts(t, s.sent()[3:], 1)
}
