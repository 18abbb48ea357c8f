package httpapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_750_000_000_123).UTC()
	id, err := weir.ParseLeaseID("01JXSE1PN80000000000000000")
	if err != nil {
		t.Fatal(err)
	}
	status := weir.LimitStatus{
		Entity: "acme", Resource: "llm", Limit: "rpm", Kind: weir.Bucket, Level: weir.LevelSystem,
		Capacity: 60, Available: -3, Requested: 7, Exceeded: true, RetryAfter: 1500 * time.Millisecond,
	}
	const statusText = `{"entity":"acme","resource":"llm","limit":"rpm","kind":"bucket","level":"system",` +
		`"capacity":60,"available":-3,"requested":7,"exceeded":true,"retry_after_ms":1500}`
	for name, c := range map[string]struct {
		document any
		want     string
	}{
		"statuses":    {httpapi.Document([]weir.LimitStatus{status}), `{"limits":[` + statusText + `]}`},
		"no statuses": {httpapi.Document([]weir.LimitStatus(nil)), `{"limits":[]}`},
		"limits": {
			httpapi.Document([]weir.Limit{{
				Name: "parallel", Kind: weir.Concurrency, Capacity: 5, Timeout: time.Minute, Shadow: true,
			}}),
			`{"parallel":{"kind":"concurrency","capacity":5,"timeout":60,"enforce":false}}`,
		},
		"receipt": {
			httpapi.Document(&weir.Receipt{LeaseID: id, At: at}),
			`{"lease_id":"` + id.String() + `","at_unix_ms":1750000000123}`,
		},
		"lease": {
			httpapi.Document(&weir.Lease{ID: id, ReservedAt: at, Replay: true, Seq: 2}),
			`{"allowed":true,"lease_id":"` + id.String() + `","reserved_at_unix_ms":1750000000123,` +
				`"replay":true,"seq":2,"limits":[]}`,
		},
		"denial": {
			httpapi.Document(&weir.DeniedError{
				LeaseID: id, Charges: []weir.Subject{{Entity: "bot", Resource: "llm"}},
				Limits: []weir.LimitStatus{status}, RetryAfter: status.RetryAfter,
			}),
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
				`"title":"Denied by a limit","status":429,` +
				`"detail":"denied by acme/llm rpm, asked by bot/llm: retry after 1.5s","allowed":false,` +
				`"lease_id":"` + id.String() + `","charges":[{"entity":"bot","resource":"llm"}],"retry_after_ms":1500,"limits":[` + statusText +
				`],"violated-policies":["rpm"]}`,
		},
		"explanation": {
			httpapi.Document(&weir.Explanation{Entity: "acme", Resource: "llm"}),
			`{"entity":"acme","resource":"llm","limits":{}}`,
		},
	} {
		got, err := json.Marshal(c.document)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, c.want)
		}
	}
}
