package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/store"
)

// proxied returns the address of a proxy in front of a server that changes its answers.
func proxied(t *testing.T, endpoint string, change func(*http.Response) error) string {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: change,
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}

// byHand is the action of an event that is not to look as if it had expired.
const byHand = "deleted by hand"

// asExpired makes the answers of a DynamoDB Local's stream what AWS's would be if the items had
// expired: removals have the identity that AWS documents for that.
func asExpired(r *http.Response) error {
	target := r.Request.Header.Get("X-Amz-Target")
	if !strings.HasSuffix(target, ".GetRecords") || r.StatusCode != http.StatusOK {
		return nil
	}
	var answer map[string]any
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return err
	}
	records, _ := answer["Records"].([]any)
	for _, found := range records {
		record, _ := found.(map[string]any)
		images, _ := record["dynamodb"].(map[string]any)
		image, _ := images["OldImage"].(map[string]any)
		typeEmpty(image)
		action, _ := image[schema.AttrAction].(map[string]any)
		if record["eventName"] == "REMOVE" && action["S"] != byHand {
			record["userIdentity"] = map[string]any{
				"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com",
			}
		}
	}
	data, err := json.Marshal(answer)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	r.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return err
}

// typeEmpty gives the empty maps and lists of an image their type. DynamoDB Local leaves it out
// in its streams, which the SDK reads as the value before.
func typeEmpty(image map[string]any) {
	for name, value := range image {
		v, _ := value.(map[string]any)
		switch {
		case len(v) == 0 && name == emptyList:
			v["L"] = []any{}
		case len(v) == 0:
			v["M"] = map[string]any{}
		case v["M"] != nil:
			typeEmpty(v["M"].(map[string]any))
		case v["L"] != nil:
			for _, element := range v["L"].([]any) {
				typeEmpty(map[string]any{"": element})
			}
		}
	}
}

// emptyList is the name of an attribute that is an empty list.
const emptyList = "an empty list"

// archiveWorld is a table and an archive.
type archiveWorld struct {
	*testing.T

	local *testkit.DynamoDBLocal
	table string
	// store is the URL of the table, and stream of the same table with removals that look like
	// those of expired items.
	store, stream string
	// archive is the URL of the archive without a query, and where is the query.
	archive, where string
}

func newArchiveWorld(t *testing.T) *archiveWorld {
	t.Helper()
	local := testkit.DynamoDB(t)
	w := &archiveWorld{T: t, local: local, table: "cli." + rand.Text()[:16],
		archive: "s3://audit-archive/limits"}
	on := func(endpoint string) string { return "?region=us-east-1&endpoint=" + endpoint }
	w.store = "dynamodb://" + w.table + on(local.Endpoint())
	w.stream = "dynamodb://" + w.table + on(proxied(t, local.Endpoint(), asExpired))
	w.where = on(testkit.S3(t, "audit-archive"))
	w.run(0, "table", "create", "--store", w.store)
	t.Cleanup(func() {
		table, err := store.Table(w.store)
		if err != nil {
			t.Error(err)
			return
		}
		if err := table.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return w
}

// run runs the program in this process, and checks its exit code.
func (w *archiveWorld) run(code int, args ...string) result {
	w.Helper()
	var out, errs bytes.Buffer
	s := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	ended := Run(w.Context(), args, s, func(string) string { return "" })
	got := result{ended, out.String(), errs.String()}
	if got.code != code {
		w.Fatalf("weir %q: got code %d, want %d: %.2000s%s", args, got.code, code, got.out,
			got.err)
	}
	return got
}

// event writes an event into the table, as another program may, and returns its key.
func (w *archiveWorld) event(e *schema.AuditEvent) schema.Key {
	w.Helper()
	at, err := schema.ParseTimestamp(e.Timestamp)
	if err != nil {
		w.Fatal(err)
	}
	if e.ID, err = schema.NewULID(at.UnixMilli(), rand.Reader); err != nil {
		w.Fatal(err)
	}
	item, err := e.Item()
	if err != nil {
		w.Fatal(err)
	}
	in := &dynamodb.PutItemInput{TableName: &w.table, Item: item}
	if _, err := w.local.Client().PutItem(w.Context(), in); err != nil {
		w.Fatal(err)
	}
	return schema.AuditKey(e.Namespace, e.Entity, e.ID)
}

// items returns the keys of all items whose sort key begins with a prefix.
func (w *archiveWorld) items(prefix string) []schema.Key {
	w.Helper()
	var keys []schema.Key
	pages := dynamodb.NewScanPaginator(w.local.Client(), &dynamodb.ScanInput{
		TableName: &w.table, ConsistentRead: new(true), FilterExpression: new("begins_with(SK, :p)"),
		ExpressionAttributeValues: schema.Item{":p": schema.String(prefix)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for _, item := range page.Items {
			key, err := schema.KeyOf(item)
			if err != nil {
				w.Fatal(err)
			}
			keys = append(keys, key)
		}
	}
	return keys
}

func (w *archiveWorld) remove(keys ...schema.Key) {
	w.Helper()
	for _, key := range keys {
		in := &dynamodb.DeleteItemInput{TableName: &w.table, Key: key.Item()}
		if _, err := w.local.Client().DeleteItem(w.Context(), in); err != nil {
			w.Fatal(err)
		}
	}
}

// aggregate runs weir aggregate until it has archived a number of events, and read everything: a
// busy DynamoDB Local shows writes late in its streams.
func (w *archiveWorld) aggregate(storeURL string, events int64) {
	w.Helper()
	var got int64
	for {
		out := w.run(0, "aggregate", "--once", "-o", "json", "--store", storeURL, "--archive",
			w.archive+w.where)
		var body aggregateBody
		if err := json.Unmarshal([]byte(out.out), &body); err != nil {
			w.Fatal(err)
		}
		if got += body.Archived; got >= events {
			break
		}
	}
	if got != events {
		w.Errorf("archived %d events, want %d", got, events)
	}
}

// details are details of an event that are hard to keep.
func hostileDetails() map[string]any {
	return map[string]any{
		"text": "\"quotes\" 'and'\nlines\r\u2028\u2029\x00\x1b[31m <b>&", "long": strings.Repeat("é\"\n", 64<<10/4),
		"beyond": int64(1<<53 + 1), "wide": json.Number("12345678901234567890123456789012345.678"),
		"deep": map[string]any{"list": []any{int64(1), nil, true,
			map[string]any{"é\"\n": "x", emptyList: []any{}}}},
		"bin": &types.AttributeValueMemberB{Value: []byte{0, 1, 255}},
		"set": &types.AttributeValueMemberSS{Value: []string{"a", "b\n"}},
	}
}
