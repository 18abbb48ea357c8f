package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/internal/testkit/recordstore"
	"github.com/weir-limiter/weir/limiter"
)

// runOn runs the program in this process against a server.
func runOn(t *testing.T, server string, args ...string) result {
	t.Helper()
	env := func(name string) string { return map[string]string{connect.ServerEnv: server}[name] }
	var out, errs bytes.Buffer
	s := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	code := Run(t.Context(), args, s, env)
	return result{code, out.String(), errs.String()}
}

// serveRecords serves the records of a store.
func serveRecords(t *testing.T, s *recordstore.Store) string {
	t.Helper()
	records := s.Open(t, nil)
	server := httptest.NewServer(httphandler.New(records, &httphandler.Options{Records: records}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestUsageRange checks which windows the flags name.
func TestUsageRange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 31, 23, 59, 59, 999, time.FixedZone("", -3600)) // April in UTC
	for _, c := range []struct{ args, window, from, to string }{
		{"", "hourly", "2026-03-31T01:00:00Z", ""},
		{"--window daily", "daily", "2026-03-02T00:00:00Z", ""},
		{"--window monthly", "monthly", "2025-05-01T00:00:00Z", ""},
		{"--to 2026-03-01", "hourly", "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"--to 2026-03-01T00:30:00Z", "hourly", "2026-02-28T01:00:00Z", "2026-03-01T00:30:00Z"},
		{"--window daily --to 2026-03-31", "daily", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"--window monthly --to 2026-03-31", "monthly", "2025-04-01T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"--from 2026-01-31", "hourly", "2026-01-31T00:00:00Z", ""},
		{"--from 2026-01-31T01:00:00+02:00", "hourly", "2026-01-30T23:00:00Z", ""},
		{"--month 2026-12", "daily", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"--month 2024-02 --window hourly", "hourly", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"--day 2024-02-29", "hourly", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
	} {
		f, cmd := &usageFlags{}, &cobra.Command{}
		f.add(cmd)
		if err := cmd.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		if err := f.plan(cmd, []string{"acme"}, now); err != nil {
			t.Fatal(err)
		}
		given := strings.Contains(c.args, "--from") || strings.Contains(c.args, "--month") ||
			strings.Contains(c.args, "--day")
		if string(f.q.Window) != c.window || timeText(f.q.From) != c.from || timeText(f.q.To) != c.to ||
			f.defaulted == given {
			t.Errorf("%q: got %s from %s to %s, default %v, want %s, %s, %s, %v", c.args, f.q.Window,
				timeText(f.q.From), timeText(f.q.To), f.defaulted, c.window, c.from, c.to, !given)
		}
	}
}

// TestUsageSizes lists more windows than a page has, and every size around that.
func TestUsageSizes(t *testing.T) {
	t.Parallel()
	server := serveRecords(t, recordstore.Month())
	list := []string{"usage", "list", "acme", "--from", "2026-10-01", "--limit", "rpm", "-o", "csv"}
	all := runOn(t, server, append(list, "--size", "5000")...)
	lines := strings.SplitAfter(all.out, "\n")
	rows := len(lines) - 2 // without the head, and what follows the last line
	if all.code != 0 || rows < 1500 {
		t.Fatalf("code %d, %d rows: %s", all.code, rows, all.err)
	}
	for _, size := range []int{1, 999, 1000, 1001, rows - 1, rows, rows + 1} {
		got := runOn(t, server, append(list, "--size", strconv.Itoa(size))...)
		n := min(size, rows)
		if got.out != strings.Join(lines[:n+1], "") {
			t.Errorf("size %d: got %d lines", size, strings.Count(got.out, "\n"))
		}
		if more := strings.Contains(got.err, "there is more"); more != (size < rows) {
			t.Errorf("size %d of %d: more is %v", size, rows, more)
		}
	}
}

// TestUsageFails checks that an error in the middle of a list fails the command.
func TestUsageFails(t *testing.T) {
	t.Parallel()
	s := recordstore.Month()
	s.Fails = errors.New("cut")
	lim := s.Open(t, nil)
	q := &weir.UsageQuery{Entity: "acme", Window: weir.Daily}
	if _, err := readUsage(t.Context(), lim, q, 1000); !errors.Is(err, weir.Unavailable) {
		t.Errorf("list: got %v, want unavailable", err)
	}
	if _, err := summarizeUsage(t.Context(), lim, q); !errors.Is(err, weir.Unavailable) {
		t.Errorf("summary: got %v, want unavailable", err)
	}
	full := []weir.Usage{
		recordstore.Hour("acme", "m", hourOfYear(0), map[string]int64{"tpm": 1<<63 - 1}),
		recordstore.Hour("acme", "m", hourOfYear(1), map[string]int64{"tpm": 1}),
	}
	lim = (&recordstore.Store{Usage: full}).Open(t, nil)
	q.Window = weir.Hourly
	if _, err := summarizeUsage(t.Context(), lim, q); !errors.Is(err, weir.Unsupported) {
		t.Errorf("a sum that is too large: got %v, want unsupported", err)
	}
}

func hourOfYear(n int) time.Time {
	return time.Date(2026, time.January, 1, n, 0, 0, 0, time.UTC)
}

// TestUsageTable prints negative units, limits that some windows lack, overdrawn limits, many
// limits and a gap without a beginning.
func TestUsageTable(t *testing.T) {
	t.Parallel()
	some := recordstore.Hour("acme", "m", hourOfYear(0), map[string]int64{"tpm": -5_000, "rpm": 1})
	some.Overdrawn = map[string]int64{"tpm": 2}
	other := recordstore.Hour("acme", "m", hourOfYear(1), map[string]int64{"usd": 7})
	many := recordstore.Hour("acme", "n", hourOfYear(0), map[string]int64{
		"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7_000,
	})
	server := serveRecords(t, &recordstore.Store{
		Usage: []weir.Usage{some, other, many},
		Gaps:  []weir.UsageGap{{To: hourOfYear(1), Reason: "older hours \x1b were dropped"}},
	})
	for _, c := range []struct{ resource, want string }{
		{"m", `HOUR               ENTITY  RESOURCE  EVENTS  rpm     tpm  usd  OVERDRAWN
2026-01-01T00:00Z  acme    m              2    1  -5,000       tpm=2
2026-01-01T01:00Z  acme    m              1                 7

usage may be missing before 2026-01-01T01:00:00Z: older hours \x1b were dropped
`},
		{"n", `HOUR               ENTITY  RESOURCE  EVENTS  UNITS
2026-01-01T00:00Z  acme    n              7  a=1 b=2 c=3 d=4 e=5 f=6 g=7,000

usage may be missing before 2026-01-01T01:00:00Z: older hours \x1b were dropped
`},
	} {
		got := runOn(t, server, "usage", "list", "acme", "-r", c.resource, "--day", "2026-01-01")
		if got.out != c.want || got.code != 0 {
			t.Errorf("got\n%s%s, want\n%s", got.out, got.err, c.want)
		}
	}
}

// TestFormulasInCSV checks that text from other programs is no formula, and that numbers stay.
func TestFormulasInCSV(t *testing.T) {
	t.Parallel()
	event := weir.AuditEvent{
		ID: "01K6EVENT00000000000000009", At: hourOfYear(0), Action: "=cmd", Entity: "acme",
		Principal: `@SUM("a", b)` + "\n", Details: map[string]any{"to": "-1+2"},
	}
	server := serveRecords(t, &recordstore.Store{
		Events: []weir.AuditEvent{event},
		Usage:  []weir.Usage{recordstore.Hour("acme", "m", hourOfYear(0), map[string]int64{"tpm": -5})},
	})
	for _, c := range []struct{ args, want string }{
		{"audit list acme", "01K6EVENT00000000000000009|2026-01-01T00:00:00Z|'=cmd|acme||" +
			"'@SUM(\"a\", b)\n|{\"to\":\"-1+2\"}"},
		{"usage list acme --day 2026-01-01",
			"acme|m|hourly|2026-01-01T00:00:00Z|2026-01-01T01:00:00Z|tpm|-5|0"},
	} {
		got := runOn(t, server, append(strings.Fields(c.args), "-o", "csv")...)
		rows, err := csv.NewReader(strings.NewReader(got.out)).ReadAll()
		if err != nil || len(rows) != 2 || strings.Join(rows[1], "|") != c.want {
			t.Errorf("%s: got %q (%v) %s, want %q", c.args, rows, err, got.err, c.want)
		}
	}
}

// TestUsagePlotSeries draws more resources than there are colours, and negative and huge units.
func TestUsagePlotSeries(t *testing.T) {
	t.Parallel()
	s := &recordstore.Store{}
	for i := range 12 {
		units := map[string]int64{"tpm": int64(100 - i)}
		s.Usage = append(s.Usage, recordstore.Hour("acme", "m"+strconv.Itoa(i), hourOfYear(i%3), units))
	}
	s.Usage[11].Units["tpm"] = -4
	s.Usage[0].Units["tpm"] = 1<<63 - 1
	f := &usageFlags{q: weir.UsageQuery{
		Entity: "acme", Window: weir.Hourly, From: hourOfYear(0), To: hourOfYear(4),
	}}
	p, err := plotUsage(t.Context(), s.Open(t, nil), f, hourOfYear(9))
	if err != nil {
		t.Fatal(err)
	}
	c := p.columns(8)
	var names []string
	for _, s := range c.Series {
		names = append(names, s.Name)
		if len(s.Values) != 4 {
			t.Errorf("%s: %d values, want 4", s.Name, len(s.Values))
		}
	}
	want := []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "others"}
	if !slices.Equal(names, want) {
		t.Errorf("got the series %q, want %q", names, want)
	}
	if got, want := c.Series[7].Values, []int64{91, 93 + 90, 92 - 4, 0}; !slices.Equal(got, want) {
		t.Errorf("others: got %v, want %v", got, want)
	}
	if c.Title != "acme: tpm" {
		t.Errorf("got the title %q", c.Title)
	}
	f.q.From, f.q.To = time.Time{}, hourOfYear(1<<20)
	p, err = plotUsage(t.Context(), s.Open(t, nil), f, hourOfYear(9))
	if err != nil || len(p.starts) != 3 {
		t.Errorf("a century: got %d windows (%v), want the three with usage", len(p.starts), err)
	}
}

// TestUsageOfTable lists the usage that the items of a DynamoDB table have, over a server. An item
// of a day stands for its hours.
func TestUsageOfTable(t *testing.T) {
	t.Parallel()
	s := startTableServer(t, nil)
	local := testkit.DynamoDB(t)
	config := local.Config()
	client := ddb.NewFromConfig(config, func(o *ddb.Options) {
		o.BaseEndpoint = aws.String(local.Endpoint())
	})
	namespace := namespaceOf(t, client, s.table.Name)
	put := func(entity, resource string, w weir.UsageWindow, at time.Time, units int64) {
		id := schema.BucketID{Namespace: namespace, Entity: entity, Resource: resource}
		u := schema.NewUsage(id, w, at)
		u.Events, u.Counters = 3, map[string]int64{"tpm": units, "rpm": 1}
		in := &ddb.PutItemInput{TableName: &s.table.Name, Item: u.Item()}
		if _, err := client.PutItem(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	put("acme", "gpt-4o", weir.Hourly, hourOfYear(1), 500)
	put("acme", "gpt-4o", weir.Hourly, hourOfYear(30), 70)
	put("acme", "gpt-4o", weir.Hourly, hourOfYear(31), 7)
	put("acme", "claude", weir.Daily, hourOfYear(0), 1000)
	put("team-b", "gpt-4o", weir.Hourly, hourOfYear(31), 9)
	for _, c := range []struct{ args, want string }{
		{"usage list acme --month 2026-01", `DAY         ENTITY  RESOURCE  EVENTS  rpm    tpm
2026-01-01  acme    claude         3    1  1,000
2026-01-01  acme    gpt-4o         3    1    500
2026-01-02  acme    gpt-4o         6    2     77
`},
		{"usage list -r gpt-4o --day 2026-01-02 --limit tpm", `
HOUR               ENTITY  RESOURCE  EVENTS  tpm
2026-01-02T06:00Z  acme    gpt-4o         3   70
2026-01-02T07:00Z  acme    gpt-4o         3    7
2026-01-02T07:00Z  team-b  gpt-4o         3    9
`},
	} {
		got := runOn(t, s.url, strings.Fields(c.args)...)
		table, rest, _ := strings.Cut(got.out, "\n\n")
		const gap = "no aggregator has run on the table"
		if want := strings.Trim(c.want, "\n"); table != want || !strings.Contains(rest, gap) {
			t.Errorf("%s: got\n%s%s, want\n%s\n and a gap: %s", c.args, got.out, got.err, want, gap)
		}
	}
	got := runOn(t, s.url, "audit", "list", "-o", "json")
	for _, part := range []string{`"action": "limits_set"`, `"principal": "tester"`} {
		if !strings.Contains(got.out, part) {
			t.Errorf("the audit of the system has no %s: %s%s", part, got.out, got.err)
		}
	}
}

// TestAuditOfBearerToken changes a limit through a server with bearer tokens, and checks that the
// audit names the owner.
func TestAuditOfBearerToken(t *testing.T) {
	t.Parallel()
	s := startTableServer(t, nil)
	local := testkit.DynamoDB(t)
	config := local.Config()
	store, err := dynamodb.Open(t.Context(), s.table.Name, &dynamodb.Options{
		Config: &config, Endpoint: local.Endpoint(), Principal: "the-server",
	})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, &limiter.Options{StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close() })
	for i, c := range []struct{ name, want string }{
		{"alice@example.org", "alice@example.org"}, {"has a space", "the-server"}, {"", "the-server"},
	} {
		server := httptest.NewServer(httphandler.New(lim, &httphandler.Options{
			Admin: lim, Records: lim, Authenticate: func(string) (httphandler.Identity, bool) {
				return httphandler.Identity{Name: c.name, Role: httphandler.RoleAdmin}, true
			},
		}))
		run := func(args ...string) string {
			t.Helper()
			env := map[string]string{connect.ServerEnv: server.URL, connect.TokenEnv: "a-bearer-token"}
			var out, errs bytes.Buffer
			streams := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
			code := Run(t.Context(), args, streams, func(name string) string { return env[name] })
			if code != 0 {
				t.Fatalf("%s: %s", args, &errs)
			}
			return out.String()
		}
		run("resource", "set-limits", "gpt-4o", "rpm:"+strconv.Itoa(500+i))
		rows := strings.Split(run("audit", "list", "-r", "gpt-4o", "--size", "1", "-o", "csv"), "\n")
		if got := strings.Split(rows[1], ",")[5]; got != c.want {
			t.Errorf("%q: got the principal %q, want %q", c.name, got, c.want)
		}
		server.Close()
	}
}

// namespaceOf returns the ID of the table's one namespace.
func namespaceOf(t *testing.T, client *ddb.Client, table string) string {
	t.Helper()
	out, err := client.Scan(t.Context(), &ddb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range out.Items {
		key, err := schema.KeyOf(item)
		if err != nil {
			t.Fatal(err)
		}
		if namespace, _, _ := strings.Cut(key.PK, "/"); namespace != schema.RegistryNamespace {
			return namespace
		}
	}
	t.Fatal("the table has no namespace")
	return ""
}
