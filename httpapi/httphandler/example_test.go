package httphandler_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// A handler serves any service, here a limiter over the memory store.
func Example() {
	store, err := memory.Open(nil)
	if err != nil {
		panic(err)
	}
	lim, err := limiter.New(store, &limiter.Options{
		Limits: []weir.Limit{{Name: "parallel", Kind: weir.Concurrency, Capacity: 1, Timeout: time.Minute}},
	})
	if err != nil {
		panic(err)
	}
	handler := httphandler.New(lim, nil)
	for range 2 {
		body := strings.NewReader(`{"entity": "acme", "resource": "gpt-4o", "costs": {"parallel": 1}}`)
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/v1/reserve", body)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, http.StatusText(w.Code))
	}
	// Output:
	// 200 OK
	// 429 Too Many Requests
}
