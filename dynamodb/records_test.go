package dynamodb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

func (s *Store) audited(t *testing.T, at weir.Subject, after string) []weir.AuditEvent {
	t.Helper()
	var out []weir.AuditEvent
	for e, err := range s.admin.ReadAudit(t.Context(), at, after, true) {
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
		err := firstError(s.admin.ReadAudit(t.Context(), acme, after, false))
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
	write := func(entity, resource string, w schema.Window, at time.Time) {
		u := schema.NewUsage(schema.BucketID{Namespace: s.config.Namespace, Entity: entity, Resource: resource}, w, at)
		u.Events, u.Counters["rpm"], u.Overdrawn = 2, 10, map[string]int64{"tpm": 1}
		s.put(t, u.Item())
	}
	for hour := range 30 {
		write("acme", "gpt-4o", schema.Hourly, midnight.Add(time.Duration(hour)*time.Hour))
	}
	write("acme", "gpt-4o", schema.Daily, midnight)
	write("acme", "gpt-4o", schema.Monthly, midnight)
	write("acme", "gpt-4o-mini", schema.Hourly, midnight)
	write("bot", "gpt-4o", schema.Hourly, midnight)
	// Older versions of the library have the full timestamp in the key of a day.
	old := schema.NewUsage(schema.BucketID{Namespace: s.config.Namespace, Entity: "py", Resource: "gpt-4o"},
		schema.Daily, midnight)
	old.WindowKey = schema.Timestamp(midnight)
	s.put(t, old.Item())
	s.bucket(t, "acme", "gpt-4o", 0, 1) // listed in the same index

	hour := func(n int) time.Time { return midnight.Add(time.Duration(n) * time.Hour) }
	for _, c := range []struct {
		q    weir.Usage
		want int
	}{
		{weir.Usage{Entity: "acme"}, 33},
		{weir.Usage{Entity: "acme", Resource: "gpt-4o"}, 32},
		{weir.Usage{Entity: "acme", Resource: "gpt"}, 0},
		{weir.Usage{Resource: "gpt-4o"}, 34},
		{weir.Usage{Resource: "gpt-4o", Window: "daily"}, 2},
		{weir.Usage{Resource: "gpt-4o", Window: "monthly"}, 1},
		{weir.Usage{Entity: "acme", Window: "hourly"}, 31},
		{weir.Usage{Entity: "acme", Resource: "gpt-4o", Start: hour(3), End: hour(5)}, 2},
		{weir.Usage{Entity: "acme", Start: hour(0), End: hour(1)}, 4},
		{weir.Usage{Entity: "acme", Resource: "gpt-4o", Start: hour(0), End: hour(1)}, 3},
		{weir.Usage{Resource: "gpt-4o", Start: hour(0), End: hour(1)}, 5},
		{weir.Usage{Resource: "gpt-4o", Start: hour(29)}, 1},
		{weir.Usage{Resource: "gpt-4o", End: hour(0)}, 0},
	} {
		var got []weir.Usage
		for u, err := range s.admin.ReadUsage(t.Context(), c.q) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, u)
		}
		if len(got) != c.want {
			t.Errorf("%+v: got %d windows, want %d", c.q, len(got), c.want)
		}
	}
	for u, err := range s.admin.ReadUsage(t.Context(), weir.Usage{Entity: "acme", Resource: "gpt-4o"}) {
		if err != nil {
			t.Fatal(err)
		}
		want := weir.Usage{Entity: "acme", Resource: "gpt-4o", Window: "hourly", Start: hour(29), End: hour(30)}
		if u.Window != want.Window || !u.Start.Equal(want.Start) || !u.End.Equal(want.End) || u.Windows != 1 ||
			u.Events != 2 || u.Units["rpm"] != 10 || u.Overdrawn["tpm"] != 1 || len(u.Units) != 1 {
			t.Errorf("first: got %+v, want the last hour", u)
		}
		break
	}
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

// TestUsageTime checks the times that a usage query accepts: keys sort by time for years of four
// digits.
func TestUsageTime(t *testing.T) {
	t.Parallel()
	s := configured(t)
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	first := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	west, east := time.FixedZone("west", -12*3600), time.FixedZone("east", 12*3600)
	for name, tc := range map[string]struct {
		start, end time.Time
		field      string
	}{
		"all years":         {first, last, ""},
		"the last second":   {last, last.In(west), ""},
		"the year 10000":    {first, time.Date(9999, 12, 31, 23, 0, 0, 0, west), "end"},
		"begins in it":      {last.Add(time.Second), time.Time{}, "start"},
		"before the year 0": {time.Date(0, 1, 1, 11, 0, 0, 0, east), last, "start"},
	} {
		for _, q := range []weir.Usage{{Entity: "acme"}, {Entity: "acme", Resource: "a"}, {Resource: "a"}} {
			q.Start, q.End = tc.start, tc.end
			err := firstError(s.admin.ReadUsage(t.Context(), q))
			if tc.field != "" {
				wantError(t, err, weir.Invalid, tc.field, "must be in the years 0000 to 9999")
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
