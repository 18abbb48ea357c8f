package dynamodb

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

func (s *Store) audited(t *testing.T, at weir.Subject, after string) []weir.AuditEvent {
	t.Helper()
	var out []weir.AuditEvent
	for e, err := range s.admin.ReadAudit(t.Context(), &weir.AuditQuery{At: at, After: after}, true) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestAudit(t *testing.T) {
	t.Parallel()
	s := configured(t)
	at := configNow
	next := func() time.Time { at = at.Add(time.Second); return at }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	acme := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	must(s.admin.WriteLimits(t.Context(), next(), acme, []weir.Limit{rate("rpm", 1)}))
	must(s.admin.WriteEntity(t.Context(), next(), "top", "", false))
	must(s.admin.WriteEntity(t.Context(), next(), "acme", "top", true))
	must(s.admin.WriteEntity(t.Context(), next(), "acme", "top", true)) // changes nothing, so no event
	must(s.admin.WriteLimits(t.Context(), next(), acme, nil))
	must(s.admin.WriteLimits(t.Context(), next(), acme, nil))
	must(s.admin.DeleteEntity(t.Context(), next(), "acme"))
	var got []string
	for _, e := range s.audited(t, weir.Subject{Entity: "acme"}, "") {
		got = append(got, e.Action+" "+e.Resource)
		if e.Principal != "tester" || e.Entity != "acme" {
			t.Errorf("got %+v", e)
		}
	}
	want := []string{
		"entity_deleted ", "limits_deleted gpt-4o", "entity_parent_changed ", "limits_set gpt-4o", "entity_created ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	events := s.audited(t, weir.Subject{Entity: "acme"}, "")
	if rest := s.audited(t, weir.Subject{Entity: "acme"}, events[1].ID); len(rest) != 3 || rest[0].ID != events[2].ID {
		t.Errorf("after the second: got %+v", rest)
	}
	lower := strings.ToLower(events[1].ID)
	if rest := s.audited(t, weir.Subject{Entity: "acme"}, lower); len(rest) != 3 || rest[0].ID != events[2].ID {
		t.Errorf("after the second, in lower case: got %+v", rest)
	}
	for _, after := range []string{"nonsense", "~", "\xff", events[1].ID + "0", strings.Repeat("x", 2000)} {
		err := firstError(s.admin.ReadAudit(t.Context(), &weir.AuditQuery{At: acme, After: after}, false))
		wantError(t, err, weir.Invalid, "after", "must be the ID of an event")
	}
	if only := s.audited(t, acme, ""); len(only) != 2 {
		t.Errorf("on the resource: got %+v", only)
	}
	if d := events[2].Details; d["old_parent_id"] != nil || d["parent_id"] != "top" || d["cascade"] != true {
		t.Errorf("details: got %v", d)
	}
}

// TestAuditRetention checks that events are kept for as long as the system's configuration says.
func TestAuditRetention(t *testing.T) {
	t.Parallel()
	s := configured(t)
	ttl := func(days int64) {
		t.Helper()
		e := s.audited(t, weir.Subject{}, "")[0]
		item := s.item(t, schema.AuditKey(s.config.Namespace, schema.AuditSystem, e.ID))
		n, err := schema.Int64(item[schema.AttrTTL])
		if err != nil || n != e.At.Unix()+days*24*3600 {
			t.Errorf("got ttl %d, %v; want %d days after %v", n, err, days, e.At)
		}
	}
	s.mustSet(t, weir.Subject{}, rate("rpm", 1))
	ttl(90)
	s.also(t, schema.SystemConfigKey(s.config.Namespace), schema.Item{schema.AttrRetention: schema.Number(7)})
	if err := s.admin.WriteLimits(t.Context(), configNow.Add(time.Hour), weir.Subject{}, nil); err != nil {
		t.Fatal(err)
	}
	ttl(7)
}

func TestPrincipal(t *testing.T) {
	t.Parallel()
	for p, ok := range map[string]bool{
		"arn:aws:iam::1:user/a b": true, "a": true, "deploy@ci:1": true, "9": true,
		"-a": false, "a b": false, "ä": false, strings.Repeat("a", 257): false,
	} {
		if got := admin.PrincipalFault(p) == ""; got != ok {
			t.Errorf("%q: got %t, want %t", p, got, ok)
		}
	}
	s := configured(t)
	s.admin.Options.Principal = "a b"
	err := s.admin.WriteLimits(t.Context(), configNow, weir.Subject{}, []weir.Limit{rate("rpm", 1)})
	wantError(t, err, weir.Invalid, "principal", "ARN")
	s.admin.Options.Principal = "" // DynamoDB Local has no principals
	s.mustSet(t, weir.Subject{}, rate("rpm", 1))
	if e := s.audited(t, weir.Subject{}, ""); len(e) != 1 || e[0].Principal != "" {
		t.Errorf("got %+v, want no principal", e)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]func(*Table){"full": func(*Table) {}, "lean": lean} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testUsage(t, configured(t, kind))
		})
	}
}

func testUsage(t *testing.T, s *Store) {
	t.Helper()
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	write := func(entity, resource string, w weir.UsageWindow, at time.Time) {
		u := schema.NewUsage(schema.BucketID{Namespace: s.config.Namespace, Entity: entity, Resource: resource}, w, at)
		u.Events, u.Counters["rpm"], u.Overdrawn = 2, 10, map[string]int64{"tpm": 1}
		s.put(t, u.Item())
	}
	for hour := range 30 {
		write("acme", "gpt-4o", weir.Hourly, midnight.Add(time.Duration(hour)*time.Hour))
	}
	write("acme", "gpt-4o", weir.Daily, midnight)
	write("acme", "gpt-4o", weir.Monthly, midnight)
	write("acme", "gpt-4o-mini", weir.Hourly, midnight)
	write("bot", "gpt-4o", weir.Hourly, midnight)
	// Older versions of the library have the full timestamp in the key of a day.
	old := schema.NewUsage(schema.BucketID{Namespace: s.config.Namespace, Entity: "py", Resource: "gpt-4o"},
		weir.Daily, midnight)
	old.WindowKey = schema.Timestamp(midnight)
	s.put(t, old.Item())
	s.bucket(t, "acme", "gpt-4o", 0, 1) // listed in the same index

	hour := func(n int) time.Time { return midnight.Add(time.Duration(n) * time.Hour) }
	const noMonth, noDay = "a", "b"
	write("acme", noDay, weir.Hourly, hour(5))
	write("acme", noDay, weir.Hourly, hour(7))
	write("acme", noMonth, weir.Daily, midnight) // for the hours below too
	write("acme", noMonth, weir.Hourly, hour(5))
	write("acme", noMonth, weir.Hourly, hour(25))
	for _, c := range []struct {
		q    weir.UsageQuery
		want int
		rpm  int64
	}{
		{weir.UsageQuery{Entity: "acme"}, 35, 350},
		{weir.UsageQuery{Entity: "acme", Resource: "gpt-4o"}, 30, 300},
		{weir.UsageQuery{Entity: "acme", Resource: "gpt"}, 0, 0},
		{weir.UsageQuery{Resource: "gpt-4o"}, 31, 310},
		{weir.UsageQuery{Resource: "gpt-4o", Window: weir.Daily}, 4, 80}, // 10, 10, 0, 6 hours of 10
		{weir.UsageQuery{Resource: "gpt-4o", Window: weir.Monthly}, 3, 20},
		{weir.UsageQuery{Entity: "acme", Window: weir.Daily}, 6, 120}, // 10 + 10, 20, 10 + 60, 10
		{weir.UsageQuery{Entity: "acme", Window: weir.Monthly}, 4, 60},
		{weir.UsageQuery{Entity: "acme", Resource: noDay, Window: weir.Monthly}, 1, 20},
		{weir.UsageQuery{Entity: "acme", Resource: noMonth, Window: weir.Monthly}, 1, 20},
		{weir.UsageQuery{Entity: "acme", Resource: "gpt-4o", From: hour(3), To: hour(5)}, 2, 20},
		{weir.UsageQuery{Entity: "acme", From: hour(0), To: hour(1)}, 2, 20},
		{weir.UsageQuery{Resource: "gpt-4o", From: hour(0), To: hour(1)}, 2, 20},
		{weir.UsageQuery{Resource: "gpt-4o", From: hour(29)}, 1, 10},
		{weir.UsageQuery{Resource: "gpt-4o", To: hour(0)}, 0, 0},
	} {
		checkUsage(t, s, &c.q, c.want, c.rpm)
	}
	got, _ := usageOf(t, s, &weir.UsageQuery{Entity: "acme", Resource: "gpt-4o", Window: weir.Hourly}, nil)
	want := weir.Usage{
		Entity: "acme", Resource: "gpt-4o", Window: weir.Hourly, Start: hour(0), End: hour(1), Events: 2,
		Units: map[string]int64{"rpm": 10}, Overdrawn: map[string]int64{"tpm": 1}, Windows: 1,
	}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("first: got %+v, want %+v", got[0], want)
	}
}

// checkUsage compares the number of records that a query finds, and the sum of their rpm, and reads the
// rest of the list after each of them.
func checkUsage(t *testing.T, s *Store, q *weir.UsageQuery, want int, rpm int64) {
	t.Helper()
	if q.Window == "" {
		q.Window = weir.Hourly
	}
	got, sum := usageOf(t, s, q, nil)
	if len(got) != want || sum != rpm {
		t.Errorf("%+v: got %d windows with %d, want %d with %d", q, len(got), sum, want, rpm)
	}
	for i := range got {
		if i > 0 && driver.CompareUsage(q, &got[i-1], &got[i]) >= 0 {
			t.Errorf("%+v: window %d is not after the one before", q, i)
		}
		rest, _ := usageOf(t, s, q, &got[i])
		rest = slices.DeleteFunc(rest, func(u weir.Usage) bool {
			return driver.CompareUsage(q, &u, &got[i]) <= 0
		})
		if !reflect.DeepEqual(rest, slices.Clone(got[i+1:])) && len(rest)+len(got[i+1:]) > 0 {
			t.Errorf("%+v: after window %d got %d windows, want %d", q, i, len(rest), len(got)-i-1)
		}
	}
}

// usageOf returns the records that a query finds, and the sum of their rpm.
func usageOf(t *testing.T, s *Store, q *weir.UsageQuery, after *weir.Usage) (all []weir.Usage, rpm int64) {
	t.Helper()
	for u, err := range s.admin.ReadUsage(t.Context(), q, after) {
		if err != nil {
			t.Fatal(err)
		}
		all, rpm = append(all, u), rpm+u.Units["rpm"]
	}
	return all, rpm
}

// TestLongAudit checks an audit of more than one page.
func TestLongAudit(t *testing.T) {
	t.Parallel()
	s := configured(t)
	const n = 12
	for i := range n {
		e := schema.AuditEvent{
			Namespace: s.config.Namespace, Entity: "acme", ID: fmt.Sprintf("%026d", i),
			Timestamp: schema.Timestamp(configNow), Action: schema.ActionLimitsSet,
			Details: map[string]any{"text": strings.Repeat("x", 200_000)},
		}
		item, err := e.Item()
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, item)
	}
	got := s.audited(t, weir.Subject{Entity: "acme"}, "")
	if len(got) != n || got[0].ID < got[n-1].ID {
		t.Errorf("got %d events, want %d, the newest first", len(got), n)
	}
}

// TestPrincipalOfTheCredentials checks that AWS is asked for the principal once if the options have
// none.
func TestPrincipalOfTheCredentials(t *testing.T) {
	t.Parallel()
	moto := testkit.Moto(t)
	cfg := testkit.LocalConfig(moto)
	c, err := connect(t.Context(), "limits", &Options{Config: &cfg, Endpoint: moto})
	if err != nil {
		t.Fatal(err)
	}
	s := &admin.Admin{Client: c}
	s.Caller.Patience = time.Minute // moto is slow to answer after its start
	got, err := s.Principal(t.Context())
	if err != nil || !strings.HasPrefix(got, "arn:aws:sts::") {
		t.Fatalf("got %q, %v; want an ARN", got, err)
	}
	c.API = nil // a second call would panic
	if again, err := s.Principal(t.Context()); err != nil || again != got {
		t.Errorf("got %q, %v; want %q", again, err, got)
	}
}

// TestAuditTime checks the bounds of a query of the audit.
func TestAuditTime(t *testing.T) {
	t.Parallel()
	s := configured(t)
	for i := range 4 {
		at := configNow.Add(time.Duration(i) * time.Minute)
		limits := []weir.Limit{rate("rpm", int64(i)+1)}
		if err := s.admin.WriteLimits(weir.WithPrincipal(t.Context(), "ann"), at, weir.Subject{}, limits); err != nil {
			t.Fatal(err)
		}
	}
	at := func(minutes int) time.Time { return configNow.Add(time.Duration(minutes) * time.Minute) }
	for _, c := range []struct {
		from, to time.Time
		want     int
	}{
		{time.Time{}, time.Time{}, 4}, {at(0), at(4), 4}, {at(1), time.Time{}, 3}, {at(1).Add(1), at(3), 1},
		{time.Time{}, at(1), 1}, {at(4), at(5), 0},
	} {
		n := 0
		for e, err := range s.admin.ReadAudit(t.Context(), &weir.AuditQuery{From: c.from, To: c.to}, true) {
			if err != nil || e.Principal != "ann" {
				t.Fatalf("got %+v, %v; want an event of ann", e, err)
			}
			n++
		}
		if n != c.want {
			t.Errorf("from %v to %v: got %d events, want %d", c.from, c.to, n, c.want)
		}
	}
}

// TestUsageGapsWithoutPermission checks what is said if the records of the table's aggregator may
// not be read, as with the policies of one namespace.
func TestUsageGapsWithoutPermission(t *testing.T) {
	t.Parallel()
	s := newStore(wired(t, script(fails("AccessDeniedException", ""))), "AAAAAAAAAAA", Options{})
	got, err := s.UsageGaps(t.Context(), configNow, &weir.UsageQuery{Entity: "acme"})
	if err != nil || len(got) != 1 || !got[0].From.IsZero() || !got[0].To.Equal(configNow) ||
		!strings.Contains(got[0].Reason, "may not be read") {
		t.Errorf("got %v, %v, want one gap until now", got, err)
	}
}

// TestUsageGapsOfATable checks what is said of a table that nothing has counted, of one that weir
// counts, and of one that the Python library's function counts.
func TestUsageGapsOfATable(t *testing.T) {
	t.Parallel()
	gaps := func(s *Store) (out []string) {
		t.Helper()
		found, err := s.UsageGaps(t.Context(), configNow, &weir.UsageQuery{Entity: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range found {
			out = append(out, fmt.Sprint(g.From.Unix()-configNow.Unix(), " ", g.To.Unix()-configNow.Unix(), " ", g.Reason))
		}
		return out
	}
	ago := func(d time.Duration) time.Time { return configNow.Add(-d) }
	s := configured(t)
	if got := gaps(s); len(got) != 1 || !strings.Contains(got[0], " 0 no aggregator has run on the table") {
		t.Errorf("before: got %q", got)
	}
	python := configured(t)
	python.also(t, schema.VersionKey(), schema.Item{"lambda_version": schema.String("0.17.0")})
	if got := gaps(python); len(got) != 0 {
		t.Errorf("with the library's function: got %q, want none", got)
	}
	counted := &schema.Aggregator{Until: ago(time.Minute)}
	s.put(t, counted.Item())
	for _, g := range []*schema.Gap{
		{From: ago(3 * time.Hour), To: ago(2 * time.Hour), Reason: "late"},
		{To: ago(9 * time.Hour), Reason: "first"},
		{Namespace: "another", From: ago(time.Hour), To: ago(time.Minute), Reason: "elsewhere"},
	} {
		s.put(t, g.Item())
	}
	want := []string{"-10800 -7200 late", "-60 0 the aggregator may not have counted it yet"}
	got := gaps(s)
	if len(got) != 3 || !strings.HasSuffix(got[0], "-32400 first") || !slices.Equal(got[1:], want) {
		t.Errorf("counted: got %q, want the first, then %q", got, want)
	}
}
