package declared_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// scanned returns the items of a namespace as sorted lines of JSON, without what is random or
// differs from one run to the next: IDs, marks of entities, and who made a change.
func (w *world) scanned(namespace string) []string {
	w.Helper()
	n, err := w.table.Namespace(w.Context(), namespace)
	if err != nil {
		w.Fatal(err)
	}
	var found []string
	client := testkit.DynamoDB(w.T).Client()
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{
		TableName: &w.table.Name, ConsistentRead: new(true),
		FilterExpression:          new("begins_with(PK, :ns)"),
		ExpressionAttributeValues: schema.Item{":ns": schema.String(n.ID + "/")},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for _, item := range page.Items {
			text, err := json.Marshal(comparable(item))
			if err != nil {
				w.Fatal(err)
			}
			found = append(found, strings.ReplaceAll(string(text), n.ID, "NS"))
		}
	}
	slices.Sort(found)
	return found
}

// comparable returns an item without what differs from one run to the next.
func comparable(item schema.Item) map[string]any {
	out := map[string]any{}
	for name, v := range item {
		switch name {
		case "pinc", "pgen", "event_id", "principal", "version", "newest_child",
			"weir_revision", "weir_applied_by",
			"b_wcu_tk", "b_wcu_tc": // the number of writes of a reservation may differ
			continue
		}
		out[name] = plainValue(v)
	}
	if sk, ok := out["SK"].(string); ok && strings.HasPrefix(sk, "#AUDIT#") {
		out["SK"] = "#AUDIT#"
		if details, ok := out["details"].(map[string]any); ok {
			delete(details, "pgen")
			delete(details, "records_deleted") // an interrupted deletion has deleted some before
		}
	}
	return out
}

func plainValue(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberM:
		m := map[string]any{}
		for name := range v.Value {
			m[name] = plainValue(v.Value[name])
		}
		return m
	case *types.AttributeValueMemberL:
		var list []any
		for _, e := range v.Value {
			list = append(list, plainValue(e))
		}
		return list
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return json.Number(v.Value)
	case *types.AttributeValueMemberSS:
		return slices.Sorted(slices.Values(v.Value))
	case *types.AttributeValueMemberBOOL:
		return v.Value
	}
	return fmt.Sprintf("%T", v)
}

// difference returns the lines that only one of two sorted lists has.
func difference(a, b []string) string {
	count := map[string]int{}
	for _, line := range a {
		count[line]++
	}
	for _, line := range b {
		count[line]--
	}
	var out []string
	for _, line := range slices.Sorted(maps.Keys(count)) {
		if n := count[line]; n != 0 {
			out = append(out, fmt.Sprintf("%+d %s", n, line))
		}
	}
	return strings.Join(out, "\n")
}

// errKilled is the error of the network after the process was killed.
var errKilled = errors.New("the process was killed")

// lifeline is the network of a process that is killed with one of its requests.
type lifeline struct {
	// at is the number of the request, counted from 1; 0 for never. lost says that the request is
	// performed, and only its answer does not arrive.
	at   int
	lost bool
	kill context.CancelFunc

	mu   sync.Mutex
	seen int
}

func (l *lifeline) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen++
	if l.at > 0 && l.seen > l.at {
		return nil, errKilled
	}
	if l.seen != l.at {
		return http.DefaultTransport.RoundTrip(r)
	}
	defer l.kill()
	if l.lost {
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			_ = answer.Body.Close()
		}
	}
	return nil, errKilled
}

// namespace registers a namespace.
func (w *world) namespace(name string) string {
	w.Helper()
	if _, _, err := w.table.RegisterNamespace(w.Context(), name); err != nil {
		w.Fatal(err)
	}
	return name
}

// use reserves one unit, so that a bucket item exists.
func (a *admin) use(entity, resource string) {
	a.w.Helper()
	_, err := a.Reserve(a.w.Context(), &weir.Request{
		Entity: entity, Resource: resource, Costs: weir.Costs{"rpm": 1},
	})
	if err != nil {
		a.w.Fatalf("reserve for %s on %s: %v", entity, resource, err)
	}
}

// within bounds the run of another program.
func within(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), 2*time.Minute)
}
