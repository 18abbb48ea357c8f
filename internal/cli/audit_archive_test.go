package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/archive"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/store"
)

// TestAuditArchive removes every event of the audit from a table as if it had expired, and checks
// that the archive lists them as the table did, to the byte.
func TestAuditArchive(t *testing.T) {
	t.Parallel()
	w := newArchiveWorld(t)
	w.run(0, "namespace", "register", "other", "--store", w.store)
	w.run(0, "namespace", "register", "gone", "--store", w.store)
	other := w.store + "&namespace=other"
	for _, args := range [][]string{
		{"system", "set-limits", "rpm:600"}, {"system", "set-limits", "rpm:601"},
		{"resource", "set-limits", "gpt-4o", "rpm:60"},
		{"entity", "set-limits", "acme", "--resource", "gpt-4o", "rpm:6"},
		{"entity", "set-limits", "acme", "rpm:7"},
	} {
		w.run(0, append(args, "--store", w.store)...)
		w.run(0, append(args, "--store", other)...)
	}
	ids := w.ids()
	for i, at := range []string{
		"2025-01-01T00:00:00Z", "2025-01-01T23:59:59Z", "2025-03-02T12:00:00Z",
	} {
		for _, entity := range []string{"acme", "a.b-c:d@e"} {
			w.event(&schema.AuditEvent{
				Namespace: ids["default"], Entity: entity, Timestamp: at,
				Action: "odd \"action\"\n<\u2028>", Principal: "arn:aws:iam::1:user/\"ü\"",
				Resource: "gpt-4o", Details: hostileDetails(), TTL: int64(i) + 1,
			})
		}
		w.event(&schema.AuditEvent{
			Namespace: ids["gone"], Entity: "acme", Timestamp: at, Action: "limits_set",
		})
	}
	manual := w.event(&schema.AuditEvent{
		Namespace: ids["default"], Entity: "acme", Timestamp: "2025-02-01T00:00:00Z",
		Action: byHand,
	})
	w.remove(manual) // by a call on the real stream
	w.aggregate(w.store, 0)
	listings := archiveListings()
	want := make(map[listing][3]string)
	for _, l := range listings {
		want[l] = w.list(l, "--store", w.store+"&namespace="+l.namespace)
	}
	gone := w.list(listing{args: "acme"}, "--store", w.store+"&namespace=gone")
	events := w.items(schema.SKAuditPrefix)
	w.remove(w.named("gone", ids["gone"])...)
	w.remove(events...)
	w.aggregate(w.stream, int64(len(events)))
	for _, l := range listings {
		got := w.list(l, "--archive", w.archive+w.where+"&namespace="+l.namespace)
		for i := range got {
			if got[i] != want[l][i] {
				t.Errorf("%+v: got\n%.2000s\nwant\n%.2000s", l, got[i], want[l][i])
			}
		}
	}
	if got := w.list(listing{args: "acme"}, "--archive",
		w.archive+w.where+"&namespace_id="+ids["gone"]); got != gone {
		t.Errorf("a namespace that is not registered any more: got %s, want %s", got, gone)
	}
	if !strings.Contains(want[listings[0]][0], "9007199254740993") ||
		strings.Contains(want[listings[0]][0], byHand) ||
		strings.Count(gone[0], "event_id") != 3 {
		t.Error("the table did not have the events that the test is about")
	}
	t.Logf("%d events, %d lists in three formats", len(events), len(listings)+1)
	w.pages(want[listings[0]][0])
}

// listing is a list of the audit in a namespace.
type listing struct{ args, namespace string }

// archiveListings are lists of the places of the test, with and without bounds.
func archiveListings() (listings []listing) {
	for _, place := range []string{
		"acme", "acme --resource gpt-4o", "--resource gpt-4o", "", "a.b-c:d@e", "nobody",
		"acme --from 2025-01-01 --to 2025-01-02", "acme --from 2025-01-01T00:00:01Z",
		"acme --to 2025-03-02T12:00:00Z",
		"acme --size 2", "acme --size 1 --from 2025-01-01 --to 2025-03-01",
	} {
		for _, namespace := range []string{"default", "other"} {
			listings = append(listings, listing{place, namespace})
		}
	}
	return listings
}

// list returns what a list prints as JSON, as a table and as CSV.
func (w *archiveWorld) list(l listing, from ...string) (outs [3]string) {
	w.Helper()
	for i, output := range []string{"json", "table", "csv"} {
		args := append([]string{"audit", "list", "-o", output}, strings.Fields(l.args)...)
		got := w.run(0, append(args, from...)...)
		outs[i] = got.out + got.err
	}
	return outs
}

// pages checks that pages of two events have the same ones as one list.
func (w *archiveWorld) pages(want string) {
	w.Helper()
	var all, page auditBody
	if err := json.Unmarshal([]byte(want), &all); err != nil {
		w.Fatal(err)
	}
	var got []string
	after := []string{}
	for {
		page = auditBody{}
		args := append([]string{"audit", "list", "acme", "-o", "json", "--size", "2", "--archive",
			w.archive + w.where}, after...)
		if err := json.Unmarshal([]byte(w.run(0, args...).out), &page); err != nil {
			w.Fatal(err)
		}
		for _, e := range page.Events {
			got = append(got, e.EventID)
		}
		if page.Next == "" {
			break
		}
		after = []string{"--after", strings.ToLower(page.Next)}
	}
	if len(got) != len(all.Events) {
		w.Fatalf("got %d events on pages, want %d", len(got), len(all.Events))
	}
	for i, e := range all.Events {
		if got[i] != e.EventID {
			w.Errorf("event %d: got %s, want %s", i, got[i], e.EventID)
		}
	}
}

// ids returns the IDs of the namespaces by their names.
func (w *archiveWorld) ids() map[string]string {
	w.Helper()
	table, err := store.Table(w.store)
	if err != nil {
		w.Fatal(err)
	}
	ids := make(map[string]string)
	for _, name := range []string{"default", "other", "gone"} {
		n, err := table.Namespace(w.Context(), name)
		if err != nil {
			w.Fatal(err)
		}
		ids[name] = n.ID
	}
	return ids
}

// named returns the keys of a namespace's registration.
func (w *archiveWorld) named(name, id string) []schema.Key {
	return []schema.Key{schema.NamespaceKey(name), schema.NamespaceIDKey(id)}
}

// line returns the line of an event of the archive.
func (w *archiveWorld) line(entity string, at time.Time, n int) string {
	w.Helper()
	id, err := schema.NewULID(at.UnixMilli(), strings.NewReader(fmt.Sprintf("%010d", n)))
	if err != nil {
		w.Fatal(err)
	}
	return fmt.Sprintf(`{"event_id":%q,"namespace":"default","namespace_id":"x","entity_id":%q,"action":"n%d",`+
		`"timestamp":%q,"principal":null,"resource":null,"details":null}`+"\n", id, entity, n, schema.Timestamp(at))
}

// put writes an object of lines.
func (w *archiveWorld) put(key string, body []byte) {
	w.Helper()
	l, err := archive.Parse(w.archive + w.where)
	if err != nil {
		w.Fatal(err)
	}
	a, err := archive.Open(w.Context(), l)
	if err != nil {
		w.Fatal(err)
	}
	if err := a.Put(w.Context(), key, body); err != nil {
		w.Fatal(err)
	}
}

// TestAuditArchiveDay lists a day of 10,000 events over 400 days, and counts the objects that are
// read.
func TestAuditArchiveDay(t *testing.T) {
	t.Parallel()
	var gets, lists atomic.Int64
	moto := testkit.S3(t, "audit-archive")
	counted := proxied(t, moto, func(r *http.Response) error {
		switch {
		case r.Request.Method == http.MethodGet && strings.HasSuffix(r.Request.URL.Path, ".gz"):
			gets.Add(1)
		case r.Request.Method == http.MethodGet:
			lists.Add(1)
		}
		return nil
	})
	w := &archiveWorld{T: t, archive: "s3://audit-archive"}
	w.where = "?region=us-east-1&endpoint=" + counted
	first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	const days, perDay = 400, 25
	for d := range days {
		var text strings.Builder
		day := first.AddDate(0, 0, d)
		for i := range perDay {
			text.WriteString(w.line([]string{"acme", "bot"}[i%2],
				day.Add(time.Duration(i)*time.Hour/2), d*perDay+i))
		}
		w.put(fmt.Sprintf("%saudit-s-%d-%d.jsonl.gz", aggregator.ArchiveDay(day), d, d),
			gzipped(t, text.String()))
	}
	for _, c := range []struct {
		args            string
		events          int
		objects, listed int64
	}{
		{"acme --from 2025-06-01 --to 2025-06-02", 13, 1, 4},
		{"acme --from 2025-06-01T12:00:00Z --to 2025-06-02T00:00:00Z", 1, 1, 4},
		{"acme --from 2025-06-01 --to 2025-06-04 --size 100", 39, 3, 6},
		{"acme --size 20", 20, 3, 6}, // a day more, because an ID may be a day off
		{"nobody --from 2025-06-01 --to 2025-06-02", 0, 1, 4},
	} {
		gets.Store(0)
		lists.Store(0)
		got := w.run(0, append(strings.Fields("audit list -o json --archive "+w.archive+w.where),
			strings.Fields(c.args)...)...)
		events := strings.Count(got.out, "event_id")
		if events != c.events || gets.Load() != c.objects || lists.Load() > c.listed {
			t.Errorf("%s: got %d events, %d objects read, %d calls to list", c.args, events,
				gets.Load(), lists.Load())
		}
		t.Logf("%s: %d events, %d of %d objects read, %d calls to list", c.args, events,
			gets.Load(), days, lists.Load())
	}
}

// TestAuditArchiveDamage checks that events that occur twice are shown once, that damage is
// reported by key and line, and that the rest is printed.
func TestAuditArchiveDamage(t *testing.T) {
	t.Parallel()
	w := &archiveWorld{T: t, archive: "s3://audit-archive/p"}
	w.where = "?region=us-east-1&endpoint=" + testkit.S3(t, "audit-archive")
	day := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	one, two := w.line("acme", day, 1), w.line("acme", day.Add(time.Hour), 2)
	three := w.line("acme", day.Add(2*time.Hour), 3)
	at := aggregator.ArchiveDay(day)
	w.put(at+"audit-s-1-2.jsonl.gz", gzipped(t, one+two))
	w.put(at+"audit-s-1-1.jsonl.gz", gzipped(t, one))
	w.put(at+"audit-s-2-3.jsonl.gz", gzipped(t, two+three))
	w.put(at+"notes.txt", []byte("not an object of the archive"))
	list := []string{"audit", "list", "acme", "--archive", w.archive + w.where}
	const want = `TIME                  ACTION  ENTITY  RESOURCE  BY  DETAILS
2025-01-01T02:00:00Z  n3      acme
2025-01-01T01:00:00Z  n2      acme
2025-01-01T00:00:00Z  n1      acme
`
	if got := w.run(0, list...); got.out != want || got.err != "" {
		t.Errorf("got\n%s%s", got.out, got.err)
	}
	w.put(at+"audit-s-4-4.jsonl.gz", gzipped(t,
		one+"{}\n"+`{"error":"is \u001b[31mbad","item":{}}`+"\n"+two))
	w.put(at+"audit-s-5-5.jsonl.gz", []byte("this is not compressed"))
	whole := gzipped(t, three+three)
	w.put(at+"audit-s-6-6.jsonl.gz", whole[:len(whole)-6])
	got := w.run(1, list...)
	const errs = `weir: object p/audit/year=2025/month=01/day=01/audit-s-4-4.jsonl.gz: line 2: is not an event: event_id is missing
weir: object p/audit/year=2025/month=01/day=01/audit-s-4-4.jsonl.gz: line 3: has an item that could not be read when it was archived: is \x1b[31mbad
weir: object p/audit/year=2025/month=01/day=01/audit-s-5-5.jsonl.gz: is not compressed with gzip: gzip: invalid header
weir: object p/audit/year=2025/month=01/day=01/audit-s-6-6.jsonl.gz: after line 2: unexpected EOF
`
	if got.out != want || got.err != errs {
		t.Errorf("got\n%s%s", got.out, got.err)
	}
	w.put(at+"audit-s-7-7.jsonl.gz", gzipped(t, strings.Repeat("x\n", 1000)))
	got = w.run(1, list...)
	if got.out != want || !strings.Contains(got.err, "and 904 more lines or objects") {
		t.Errorf("got\n%s%s", got.out, got.err)
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestAuditArchiveMisuse checks what the commands say about mistakes.
func TestAuditArchiveMisuse(t *testing.T) {
	t.Parallel()
	w := &archiveWorld{T: t}
	for _, c := range []struct{ args, words string }{
		{"audit list --archive https://b/p", "name a bucket with s3://BUCKET/PREFIX"},
		{"audit list --archive s3://", "archive.bucket"},
		{"audit list --archive=", "--archive must not be empty"},
		{"audit list --archive s3://bucket?x=y", "archive.x"},
		{"audit list --archive s3://bucket --server http://127.0.0.1:1",
			"--archive and --server cannot be combined"},
		{"audit list --archive s3://bucket --store dynamodb://limits",
			"--archive and --store cannot be combined"},
		{"audit list --archive s3://bucket --token-file x",
			"--archive and --token-file cannot be combined"},
		{"audit list --archive s3://bucket --size 0", "--size 0"},
		{"audit list --archive s3://bucket --after x", "--after"},
		{"audit list --archive s3://bucket --from 2025-01-02 --to 2025-01-02",
			"--to must be after --from"},
		{"aggregate --store dynamodb://limits --archive s3://bucket?namespace=x",
			"archive.namespace"},
		{"aggregate --store dynamodb://limits --archive bucket", "s3://BUCKET/PREFIX"},
		{"aggregate --store dynamodb://limits --archive=", "--archive must not be empty"},
	} {
		if got := w.run(2, strings.Fields(c.args)...); got.out != "" || !strings.Contains(got.err,
			c.words) {
			t.Errorf("%s: got %s%s", c.args, got.out, got.err)
		}
	}
	moto := testkit.S3(t, "there")
	for _, args := range []string{
		"aggregate --store dynamodb://limits --archive", "audit list --archive",
	} {
		got := w.run(1, append(strings.Fields(args),
			"s3://not-there/p?region=us-east-1&endpoint="+moto)...)
		if !strings.Contains(got.err, `archive "s3://not-there/p/": the bucket does not exist: create it`) {
			t.Errorf("%s: got %s", args, got.err)
		}
	}
}
