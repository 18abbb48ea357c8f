package dynamodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

func testKeys(n int) []schema.Key {
	keys := make([]schema.Key, n)
	for i := range keys {
		keys[i] = schema.Key{PK: "ns/ENTITY#e", SK: fmt.Sprintf("#%04d", i)}
	}
	return keys
}

// TestBatches reads and deletes more items than fit one call, with more bytes than fit one page.
func TestBatches(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	c := connected(t, table)
	keys := testKeys(240)
	large := strings.Repeat("x", 20_000) // 60 of them fill a page
	for _, key := range keys[:180] {
		item := key.Item()
		item["large"] = schema.String(large)
		putItem(t, c.Client, item)
	}
	asked := append(append([]schema.Key(nil), keys...), keys[3], keys[200]) // two of them twice
	items, err := c.BatchGet(t.Context(), asked, true)
	if err != nil || len(items) != len(asked) {
		t.Fatalf("got %d items, %v; want %d", len(items), err, len(asked))
	}
	for i, item := range items {
		if there := i < 180 || i == 240; (item != nil) != there {
			t.Fatalf("item %d: got %t, want %t", i, item != nil, there)
		}
		if item != nil {
			if key, err := schema.KeyOf(item); err != nil || key != asked[i] {
				t.Fatalf("item %d: got %v, %v", i, key, err)
			}
		}
	}
	pages, found := 0, 0
	for page, err := range c.QueryPages(t.Context(), client.Partition("ns/ENTITY#e", "#0", true)) {
		if err != nil {
			t.Fatal(err)
		}
		pages++
		found += len(page)
	}
	if found != 180 || pages < 3 {
		t.Errorf("got %d items on %d pages, want 180 on at least 3", found, pages)
	}
	some, err := c.QueryAll(t.Context(), client.Partition("ns/ENTITY#e", "#001", false))
	if err != nil || len(some) != 10 {
		t.Errorf("with a prefix: got %d, %v; want 10", len(some), err)
	}
	if err := c.BatchDelete(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	left, err := c.QueryAll(t.Context(), client.Partition("ns/ENTITY#e", "", true))
	if err != nil || len(left) != 0 {
		t.Errorf("after the deletion: got %d, %v", len(left), err)
	}
	if none, err := c.BatchGet(t.Context(), nil, true); err != nil || len(none) != 0 {
		t.Errorf("of nothing: got %v, %v", none, err)
	}
}

// partly returns a transport that answers batches with at most a number of items and leaves the
// others unprocessed.
func partly(takes int) http.RoundTripper {
	return script(reply{by: func(r *http.Request) reply {
		var asked struct{ RequestItems map[string]json.RawMessage }
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return reply{err: err}
		}
		if err := json.Unmarshal(body, &asked); err != nil {
			return reply{err: err}
		}
		var get struct{ Keys []json.RawMessage }
		var write []json.RawMessage
		if json.Unmarshal(asked.RequestItems["limits"], &write) == nil {
			left, err := json.Marshal(write[min(takes, len(write)):])
			body := `{"UnprocessedItems":{"limits":` + string(left) + `}}`
			return reply{status: http.StatusOK, body: body, err: err}
		}
		if err := json.Unmarshal(asked.RequestItems["limits"], &get); err != nil {
			return reply{err: err}
		}
		done, left := get.Keys[:min(takes, len(get.Keys))], get.Keys[min(takes, len(get.Keys)):]
		found, err := json.Marshal(done)
		rest, failed := json.Marshal(left)
		return reply{status: http.StatusOK, body: `{"Responses":{"limits":` + string(found) +
			`},"UnprocessedKeys":{"limits":{"Keys":` + string(rest) + `}}}`, err: errors.Join(err, failed)}
	}})
}

// TestUnprocessed checks that the unprocessed items of a batch are requested again until the
// context ends.
func TestUnprocessed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys := testKeys(130)
		some := wired(t, partly(7))
		items, err := some.BatchGet(t.Context(), keys, false)
		if err != nil {
			t.Fatal(err)
		}
		for i, item := range items {
			if item == nil {
				t.Fatalf("item %d is missing", i)
			}
		}
		if err := some.BatchDelete(t.Context(), keys); err != nil {
			t.Error(err)
		}
		none := wired(t, partly(0))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = none.BatchGet(ctx, keys, false)
		if !errors.Is(err, weir.Unavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that it is throttled", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := none.BatchDelete(ctx, keys); !errors.Is(err, weir.Unavailable) {
			t.Errorf("got %v, want that it is throttled", err)
		}
	})
}

// TestQueryFails checks that a query ends at the first error, and that an item without keys is one.
func TestQueryFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page := answerWith(http.StatusOK, `{"Items":[{"PK":{"S":"a"},"SK":{"S":"b"}}],`+
			`"LastEvaluatedKey":{"PK":{"S":"a"},"SK":{"S":"b"}}}`)
		c := wired(t, script(page, fails("AccessDeniedException", "")))
		_, err := c.QueryAll(t.Context(), client.Partition("a", "", false))
		if !errors.Is(err, weir.PermissionDenied) {
			t.Errorf("got %v, want %v", err, weir.PermissionDenied)
		}
		bad := wired(t, script(answerWith(http.StatusOK, `{"Responses":{"limits":[{"PK":{"S":"a"}}]}}`)))
		if _, err := bad.BatchGet(t.Context(), testKeys(1), false); !errors.Is(err, weir.Unsupported) {
			t.Errorf("got %v, want %v", err, weir.Unsupported)
		}
	})
}
