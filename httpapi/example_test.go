package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// A client is used like a limiter in the process. The server of this example has one limit in
// memory; another one is started with `weir serve`.
func ExampleNewClient() {
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{Limits: []weir.Limit{{Name: "tpm", Capacity: 10_000}}})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	server := httptest.NewServer(httphandler.New(l, nil))
	defer server.Close()

	client, err := httpapi.NewClient(server.URL, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	request := &weir.Request{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 10_000}}
	lease, err := client.Reserve(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Reserve(ctx, request)
	_, isDenied := errors.AsType[*weir.DeniedError](err)
	fmt.Println("denied:", isDenied)

	if _, err := lease.Complete(ctx, weir.Costs{"tpm": 0}); err != nil { // no token was used
		log.Fatal(err)
	}
	of, err := client.Status(ctx, "acme", "gpt-4o")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(of[0].Limit, of[0].Available)
	// Output:
	// denied: true
	// tpm 10000
}

// The middleware limits the requests to a handler, here by the owner of an API key. The handler
// reports what the request really used.
func ExampleMiddleware() {
	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{Limits: []weir.Limit{
		{Name: "tpm", Kind: weir.Window, Capacity: 1_000, Window: time.Minute},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ask := func(r *http.Request) (*weir.Request, error) {
		return &weir.Request{
			Entity: r.Header.Get("X-Tenant"), Resource: "chat", Costs: weir.Costs{"tpm": 600},
		}, nil
	}
	chat := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpapi.LeaseFrom(r.Context()).Report(weir.Costs{"tpm": 500})
		fmt.Fprint(w, "hello")
	})
	server := httptest.NewServer(httpapi.Middleware(l, ask, nil)(chat))
	defer server.Close()

	for range 2 {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("X-Tenant", "acme")
		resp, err := server.Client().Do(req)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(resp.Status)
		resp.Body.Close()
	}
	// Output:
	// 200 OK
	// 429 Too Many Requests
}

// The transport limits the requests of a client. It reserves the most tokens that the call may use,
// and charges what the model's answer says.
func ExampleNewTransport() {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"text": "hello", "total_tokens": 12}`)
	}))
	defer model.Close()

	store, _ := memory.Open(nil)
	l, err := limiter.New(store, &limiter.Options{Limits: []weir.Limit{{Name: "tpm", Capacity: 1_000}}})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	ask := func(*http.Request) (*weir.Request, error) {
		return &weir.Request{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 800}}, nil
	}
	actuals := func(_ *http.Response, tail []byte) ([]weir.Costs, bool) {
		var used struct {
			TotalTokens int64 `json:"total_tokens"`
		}
		if err := json.Unmarshal(tail, &used); err != nil {
			return nil, false // not known: what was reserved stays charged
		}
		return []weir.Costs{{"tpm": used.TotalTokens}}, true
	}
	client := &http.Client{
		Transport: httpapi.NewTransport(l, ask, &httpapi.TransportOptions{
			Base: model.Client().Transport, Actuals: actuals,
		}),
	}
	ctx := context.Background()
	for range 3 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, model.URL, strings.NewReader("hi"))
		if err != nil {
			log.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		var body bytes.Buffer
		if _, err := io.Copy(&body, resp.Body); err != nil {
			log.Fatal(err)
		}
		resp.Body.Close() // returns when the lease is settled
	}
	fmt.Println("three calls of 800 tokens at most fit 1000 a minute")
	// Output: three calls of 800 tokens at most fit 1000 a minute
}
