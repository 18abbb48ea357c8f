package store_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/store"
)

func definitions() *weir.Definitions {
	return &weir.Definitions{System: []weir.Limit{{
		Name: "x", Kind: weir.Window, Capacity: 10, Window: time.Hour,
	}}}
}

func TestOpenMemory(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"memory:", "memory:?"} {
		b, err := store.Open(t.Context(), u, &store.Options{Definitions: definitions()})
		if err != nil {
			t.Fatalf("%s: %v", u, err)
		}
		if _, ok := b.(driver.LeaseRecoverer); ok {
			t.Errorf("%s: says that it recovers leases", u)
		}
		c, err := b.(driver.ConfigReader).ReadConfig(t.Context(), weir.Subject{Entity: "e", Resource: "r"}, false)
		if err != nil || len(c.Levels) != 1 {
			t.Errorf("%s: got configuration %+v, %v", u, c, err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("%s: close: %v", u, err)
		}
	}
	if _, err := store.Open(t.Context(), "memory:", nil); err != nil {
		t.Errorf("without options: %v", err)
	}
}

func TestOpenMemorySnapshot(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a b+c;d&e")
	u := "memory:?every=10ms&snapshot=" + strings.ReplaceAll(url.PathEscape(file), "&", "%26")
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for reserved := range 2 { // the second store still has what the first one took
		b, err := store.Open(t.Context(), u, &store.Options{Definitions: definitions()})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(b, &limiter.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := l.Reserve(t.Context(), &weir.Request{
			Entity: "e", Resource: "r", Costs: weir.Costs{"x": 4},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := lease.Limits[0].Available, int64(6-4*reserved); got != want {
			t.Errorf("available: got %d, want %d", got, want)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// TestOpenMemoryUsage checks that the bounds in the URL reach the store, with a snapshot and without.
func TestOpenMemoryUsage(t *testing.T) {
	t.Parallel()
	file := url.PathEscape(filepath.Join(t.TempDir(), "state"))
	for _, tc := range []struct {
		query string
		code  weir.Code
	}{
		{"usage_days=31&usage_entries=1000000&audit_events=5", ""},
		{"usage_days=-1&audit_events=-1", weir.Unsupported},
	} {
		for _, u := range []string{"memory:?" + tc.query, "memory:?snapshot=" + file + "&" + tc.query} {
			b, err := store.Open(t.Context(), u, nil)
			if err != nil {
				t.Fatalf("%s: %v", u, err)
			}
			q := &weir.UsageQuery{Entity: "e", Window: weir.Hourly, Size: 1}
			var got error
			for _, err := range b.(driver.UsageReader).ReadUsage(t.Context(), q, nil) {
				got = err
			}
			if (got == nil) != (tc.code == "") || tc.code != "" && !errors.Is(got, tc.code) {
				t.Errorf("%s: usage: got %v, want code %q", u, got, tc.code)
			}
			if err := b.Close(); err != nil {
				t.Errorf("%s: close: %v", u, err)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100)
	for _, tc := range []struct {
		url   string
		code  weir.Code
		field string
		value string
		words string
	}{
		{"", weir.Invalid, "store", "", "scheme"},
		{"memory", weir.Invalid, "store", "memory", "scheme"},
		{"redis://user:secret@host", weir.Invalid, "store", "redis:", "is not a store"},
		{"Memory:", weir.Invalid, "store", "Memory:", "is not a store"},
		{long + ":", weir.Invalid, "store", strings.Repeat("é", 64) + "…", "is not a store"},
		{"memory:file", weir.Invalid, "store", "memory:file", "must be memory: or memory:?snapshot=FILE"},
		{"memory://host?snapshot=f", weir.Invalid, "store", "memory://host?snapshot=f", "must be memory: or memory:?snapshot=FILE"},
		{"memory:#f", weir.Invalid, "store", "memory:#f", "must be memory: or memory:?snapshot=FILE"},
		{"memory:?file=f", weir.Invalid, "store.file", "f", "is unknown"},
		{"memory:?Snapshot=f", weir.Invalid, "store.Snapshot", "f", "is unknown"},
		{"memory:?snapshot=f&", weir.Invalid, "store.", "", "is unknown"},
		{"memory:?snapshot=f&snapshot=g", weir.Invalid, "store.snapshot", "g", "twice"},
		{"memory:?snapshot", weir.Invalid, "store.snapshot", "", "value"},
		{"memory:?snapshot=", weir.Invalid, "store.snapshot", "", "name of a file"},
		{"memory:?snapshot=%zz", weir.Invalid, "store.snapshot", "%zz", "percent"},
		{"memory:?every=1s", weir.Invalid, "store.every", "1s", "needs snapshot=FILE"},
		{"memory:?snapshot=f&every=often", weir.Invalid, "store.every", "often", "duration"},
		{"memory:?snapshot=f&every=0s", weir.Invalid, "store.every", "0s", "duration"},
		{"memory:?snapshot=f&every=-1s", weir.Invalid, "store.every", "-1s", "duration"},
		{"memory:?usage_days=0", weir.Invalid, "store.usage_days", "0", "above zero, or -1"},
		{"memory:?usage_days=-2", weir.Invalid, "store.usage_days", "-2", "above zero, or -1"},
		{"memory:?usage_days=a+week", weir.Invalid, "store.usage_days", "a+week", "above zero, or -1"},
		{"memory:?usage_entries=-1", weir.Invalid, "store.usage_entries", "-1", "above zero"},
		{"memory:?audit_events=9999999999", weir.Invalid, "store.audit_events", "9999999999", "above zero"},
		{"memory:?snapshot=f&every=1us", weir.Invalid, "store.every", "1us", "duration"},
	} {
		b, err := store.Open(context.Background(), tc.url, nil)
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || b != nil {
			t.Errorf("%q: got %v, %v; want a typed error", tc.url, b, err)
			continue
		}
		if e.Code != tc.code || e.Field != tc.field || e.Value != tc.value ||
			!strings.Contains(e.Reason, tc.words) {
			t.Errorf("%q: got %+v, want %s about %s %q: %s",
				tc.url, e, tc.code, tc.field, tc.value, tc.words)
		}
	}
}

func TestOpenRefusesDefinitions(t *testing.T) {
	t.Parallel()
	bad := &store.Options{Definitions: &weir.Definitions{System: []weir.Limit{{Name: "x"}}}}
	for _, u := range []string{"memory:", "memory:?snapshot=" + filepath.Join(t.TempDir(), "state")} {
		if b, err := store.Open(t.Context(), u, bad); !errors.Is(err, weir.Invalid) || b != nil {
			t.Errorf("%s: got %v, %v; want %v", u, b, err, weir.Invalid)
		}
	}
}

// TestOpenRefusesRetention checks that a store without settings of the retention does not ignore them
// silently.
func TestOpenRefusesRetention(t *testing.T) {
	t.Parallel()
	kept := &store.Options{Definitions: &weir.Definitions{Retention: weir.Retention{UsageDays: new(int64(7))}}}
	for _, u := range []string{"memory:", "tigerbeetle://emulator", "tigerbeetle://127.0.0.1:1"} {
		b, err := store.Open(t.Context(), u, kept)
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || e.Code != weir.Unsupported || e.Field != "system.retention" || b != nil {
			t.Errorf("%s: got %v, %v; want unsupported", u, b, err)
		}
	}
}

func TestOpenMemoryReportsTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := store.Open(t.Context(), "memory:?snapshot="+file, nil)
	if !errors.Is(err, weir.Invalid) || !strings.Contains(err.Error(), file) || b != nil {
		t.Errorf("got %v, %v; want an error that names the file", b, err)
	}
}

func TestOpenMemoryReportsFailures(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	b, err := store.Open(t.Context(), "memory:?every=10ms&snapshot="+filepath.Join(dir, "file"), &store.Options{
		Definitions: definitions(),
		OnError: func(err error) {
			select {
			case told <- err:
			default: // one is enough
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-told:
		t.Errorf("nothing has changed, and yet: %v", err)
	default:
	}
	if _, err := l.Reserve(t.Context(), &weir.Request{
		Entity: "e", Resource: "r", Costs: weir.Costs{"x": 4},
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-told:
		if !strings.Contains(err.Error(), "write snapshot") {
			t.Errorf("got %v, want that a snapshot cannot be written", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("OnError was not called within a minute")
	}
	if err := os.Rename(dir+".gone", dir); err != nil { // otherwise the last snapshot fails
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestUnknownParameter checks that the error for an unknown parameter names the known ones.
func TestUnknownParameter(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"memory:?snapshots=x":              `is unknown: must be snapshot`,
		"dynamodb://table?zone=eu-west-1":  ` or `,
		"tigerbeetle://127.0.0.1:1?name=x": ` or `,
	} {
		_, err := store.Open(t.Context(), url, nil)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "is unknown: must be ") {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
}
