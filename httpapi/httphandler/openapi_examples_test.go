package httphandler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/server/statuspage"
	"github.com/weir-limiter/weir/internal/testkit/recordstore"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

const (
	// exampleLimits declares the limits with which the document's examples are true.
	exampleLimits = `
version: 1
system:
  limits: {rpm: {capacity: 600}}
resources:
  gpt-4o:
    limits:
      rpm: {capacity: 500}
      tpm: {capacity: 200000, refill_amount: 100000, refill_period: 60}
      parallel: {kind: concurrency, capacity: 20, timeout: 300}
  key: {limits: {units: {capacity: 1000}}}
entities:
  acme: {}
  acme-bot:
    parent: acme
    cascade: true
    resources:
      gpt-4o:
        limits:
          rpm: {capacity: 100}
          hourly: {kind: window, capacity: 2000, window: 3600}
          usd_micros: {kind: budget, capacity: 50000000, every: month, zone: Europe/Berlin, enforce: false}
`
	exampleToken = "example-bearer-token"
)

// exampleWorld has a clock at the instant in the lease ID of the examples.
type exampleWorld struct {
	limiter  *limiter.Limiter
	records  *limiter.Limiter // of October 2026
	activity *statuspage.Activity
	clock    func() time.Time
}

func newExampleWorld(t *testing.T) *exampleWorld {
	t.Helper()
	start := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	return newExampleWorldAt(t, func() time.Time { return start }, &limiter.Options{})
}

func newExampleWorldAt(t *testing.T, clock func() time.Time, o *limiter.Options) *exampleWorld {
	t.Helper()
	parsed, err := manifest.Parse("limits.yaml", []byte(exampleLimits))
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.Open(&memory.Options{Definitions: parsed.Definitions})
	if err != nil {
		t.Fatal(err)
	}
	w := &exampleWorld{
		records: recordstore.Month().Open(t, clock), activity: statuspage.NewActivity(clock()), clock: clock,
	}
	o.Now, o.Observer = clock, w.activity
	w.limiter, err = limiter.New(NewRetentionStore(store), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.limiter.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// target returns the path and query of the operation, with the examples of its parameters.
func (o *apiOperation) target(t *testing.T) string {
	t.Helper()
	target := o.path
	query := url.Values{}
	for _, p := range o.Parameters {
		if p.In == "header" {
			continue // a condition, which has tests of its own
		}
		if p.Example == nil {
			t.Errorf("%s: %s has no example", o.pattern(), p.Name)
		}
		text := fmt.Sprint(p.Example)
		if p.In == "query" {
			query.Set(p.Name, text)
		}
		target = strings.ReplaceAll(target, "{"+p.Name+"}", url.PathEscape(text))
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target
}

// exampleAnswer returns the handler's answer to an operation with one of its examples as body.
func (o *apiOperation) exampleAnswer(t *testing.T, h http.Handler, body json.RawMessage) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), o.method, o.target(t), bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+exampleToken)
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder
}

// TestOpenAPIExamples sends each example and compares the answer with the document's. The examples
// of requests and answers match by name.
func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	d := readDocument(t, openAPIDocument)
	byID := map[string]*apiOperation{}
	for _, o := range d.operations() {
		byID[o.OperationID] = o
	}
	reserve := byID["reserve"]
	requests, answers := 0, 0
	for _, o := range d.operations() {
		examples := o.RequestBody.Content["application/json"].Examples
		names := []string{"example"}
		if len(o.RequestBody.Content) > 0 {
			names = nil
			for name := range examples {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s has no example", o.pattern())
		}
		for _, name := range names {
			w := newExampleWorld(t)
			h := fullHandler(w)
			if slices.Contains(o.Tags, "leases") && o != reserve {
				before := reserve.RequestBody.Content["application/json"].Examples
				first, ok := before[name]
				if !ok {
					first = before["one charge"]
				}
				if got := reserve.exampleAnswer(t, h, first.Value); got.Code != http.StatusOK {
					t.Fatalf("reserve: %s", got.Body)
				}
			}
			got := o.exampleAnswer(t, h, examples[name].Value)
			if got.Code != http.StatusOK {
				t.Errorf("%s %q: %d %s", o.pattern(), name, got.Code, got.Body)
			}
			requests++
			if want, ok := o.Responses["200"].Content["application/json"].Examples[name]; ok {
				answers++
				equalJSON(t, o.pattern()+" "+strconv.Quote(name), got.Body.Bytes(), want.Value)
			}
		}
	}
	t.Logf("%d requests, %d answers compared", requests, answers)
	if requests == 0 || answers == 0 {
		t.Error("nothing was compared")
	}
}

// TestOpenAPIProblems checks the examples of problems.
func TestOpenAPIProblems(t *testing.T) {
	t.Parallel()
	d := readDocument(t, openAPIDocument)
	const id = `"lease_id":"01KJQ6PSG0D4ZVJ0W5Q2M8R3TA"`
	for _, c := range []struct{ response, path, body string }{
		{"Invalid", "/v1/reserve", `{"entity":"acme","resource":"gpt-4o","costs":{"tpm":-5}}`},
		{"Denied", "/v1/reserve", `{` + id + `,"entity":"acme-bot","resource":"gpt-4o","costs":{"rpm":60}}`},
		{"NothingToJudge", "/v1/reserve", `{"entity":"acme","resource":"gpt-4o","costs":{"tpd":1}}`},
		{"NeverSatisfiable", "/v1/reserve", `{"entity":"acme","resource":"gpt-4o","costs":{"tpm":200001}}`},
		{"UnknownLease", "/v1/cancel", `{` + id + `}`},
	} {
		t.Run(c.response, func(t *testing.T) {
			t.Parallel()
			h := fullHandler(newExampleWorld(t))
			o := &apiOperation{method: "POST", path: "/v1/reserve"}
			first := o.exampleAnswer(t, h,
				json.RawMessage(`{"entity":"acme-bot","resource":"gpt-4o","costs":{"rpm":60}}`))
			if first.Code != http.StatusOK {
				t.Fatalf("reserve: %s", first.Body)
			}
			o.path = c.path
			got := o.exampleAnswer(t, h, json.RawMessage(c.body))
			want := d.Components.Responses[c.response].Content["application/problem+json"].Examples["example"]
			equalJSON(t, c.response, got.Body.Bytes(), want.Value)
		})
	}
}

func equalJSON(t *testing.T, what string, got, want []byte) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Errorf("%s: no example, the handler says %s", what, got)
		return
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s: the handler says\n%s, the document\n%s", what, got, want)
	}
}
