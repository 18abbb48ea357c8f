package model_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/limiter"
)

// A model is a service, whose answers a test compares with those of another one.
func ExampleNew() {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	m, err := model.New(
		&weir.Definitions{System: []weir.Limit{{Name: "rpm", Capacity: 60}}},
		model.Settings{Start: now, Options: limiter.Options{Now: func() time.Time { return now }}},
		nil,
	)
	if err != nil {
		log.Fatal(err)
	}
	request := &weir.Request{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 50}}
	for range 2 {
		_, err := m.Reserve(context.Background(), request)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// weir: denied by acme/gpt-4o rpm: retry after 40s
}
