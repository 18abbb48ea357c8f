package dynamodb

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/limiter"
)

// wantConflict fails the test unless an error is a conflict about a version, with this reason.
func wantConflict(t *testing.T, err error, reason string) {
	t.Helper()
	if _, ok := errors.AsType[*change.ConflictError](err); !ok || !errors.Is(err, weir.Conflict) ||
		!strings.Contains(err.Error(), reason) {
		t.Errorf("got %v, want a conflict with %q", err, reason)
	}
}

// entityVersion returns the version of an entity that is declared.
func (s *Store) entityVersion(t *testing.T, name string) string {
	t.Helper()
	e, err := s.ReadEntity(t.Context(), name)
	if err != nil || e == nil || e.Version == "" {
		t.Fatalf("%s: got %+v, %v", name, e, err)
	}
	return e.Version
}

// placeVersion returns the version of a place, empty if it has no limits.
func (s *Store) placeVersion(t *testing.T, at weir.Subject) string {
	t.Helper()
	place, err := s.ReadPlace(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return place.Version
}

// versionPlaces are places of every sort.
func versionPlaces() []weir.Subject {
	return []weir.Subject{
		{}, {Resource: "gpt-4o"}, {Entity: "acme", Resource: "gpt-4o"},
		{Entity: "acme", Resource: weir.DefaultResource},
	}
}

// TestPlaceVersions makes changes of places on condition.
func TestPlaceVersions(t *testing.T) {
	t.Parallel()
	s := configured(t)
	for _, at := range versionPlaces() {
		set := func(o change.Options, limits ...weir.Limit) (string, error) {
			return s.ChangeLimits(t.Context(), configNow, at, limits, o)
		}
		must := func(version string, err error) string {
			t.Helper()
			if err != nil || version != s.placeVersion(t, at) {
				t.Errorf("%+v: got version %q, %v; want %q", at, version, err, s.placeVersion(t, at))
			}
			return version
		}
		_, err := set(change.Options{IfVersion: change.AnyVersion}, rate("rpm", 1))
		wantConflict(t, err, "does not exist")
		first := must(set(change.Options{IfAbsent: true}, rate("rpm", 1)))
		_, err = set(change.Options{IfAbsent: true}, rate("rpm", 1))
		wantConflict(t, err, "exists already")
		second := must(set(change.Options{IfVersion: first}, rate("rpm", 2)))
		_, err = set(change.Options{IfVersion: first}, rate("rpm", 3))
		wantConflict(t, err, "has changed")
		if again := must(set(change.Options{IfVersion: first}, rate("rpm", 2))); again != second {
			t.Errorf("%+v: a repeated change has version %q, want %q", at, again, second)
		}
		if back := must(set(change.Options{}, rate("rpm", 1))); back != first {
			t.Errorf("%+v: the same limits have versions %q and %q", at, first, back)
		}
		third := must(set(change.Options{IfVersion: change.AnyVersion}, rate("rpm", 1), rate("tpm", 1)))
		_, err = set(change.Options{IfVersion: first})
		wantConflict(t, err, "has changed")
		if gone := must(set(change.Options{IfVersion: third})); gone != "" {
			t.Errorf("%+v: no limits have version %q", at, gone)
		}
		for _, limits := range [][]weir.Limit{nil, {rate("rpm", 1)}} {
			_, err = set(change.Options{IfVersion: third}, limits...)
			wantConflict(t, err, "deleted meanwhile")
		}
	}
	if e := s.entityVersion(t, "acme"); e == "" {
		t.Error("the entity of the limits has no version")
	}
}

// TestEntityVersions makes changes of entities on condition.
func TestEntityVersions(t *testing.T) {
	t.Parallel()
	s := configured(t)
	ctx := t.Context()
	set := func(o change.Options, c *change.Entity) (string, error) {
		return s.ChangeEntity(ctx, configNow, "acme", c, o)
	}
	team := func(name string) *change.Entity {
		return &change.Entity{Metadata: map[string]any{"team": name}}
	}
	_, err := set(change.Options{IfVersion: "x"}, team("a"))
	wantConflict(t, err, "does not exist")
	if s.meta(t, "acme") != nil {
		t.Error("a refused change declared the entity")
	}
	first, err := set(change.Options{IfAbsent: true}, team("a"))
	if err != nil || first != s.entityVersion(t, "acme") {
		t.Errorf("got %q, %v", first, err)
	}
	_, err = set(change.Options{IfAbsent: true}, team("a"))
	wantConflict(t, err, "exists already")
	second, err := set(change.Options{IfVersion: first}, team("b"))
	if err != nil || second != s.entityVersion(t, "acme") || second == first {
		t.Errorf("got %q, %v", second, err)
	}
	if again, err := set(change.Options{IfVersion: first}, team("b")); err != nil || again != second {
		t.Errorf("a repeated change: got %q, %v; want %q", again, err, second)
	}
	_, err = set(change.Options{IfVersion: first}, team("c"))
	wantConflict(t, err, "has changed")
	s.mustEntity(t, "bot", "acme", true) // a child is no change of the parent
	if now := s.entityVersion(t, "acme"); now != second {
		t.Errorf("a child changed the version from %q to %q", second, now)
	}
	s.mustSet(t, weir.Subject{Entity: "acme", Resource: "gpt-4o"}, rate("rpm", 1))
	_, err = set(change.Options{IfVersion: second}, team("c"))
	wantConflict(t, err, "has changed") // its limits are a part of it
	bot := s.entityVersion(t, "bot")
	s.mustEntity(t, "bot", "", false)
	wantConflict(t, s.RemoveEntity(ctx, configNow, "bot", change.Options{IfVersion: bot}), "has changed")
	bot = s.entityVersion(t, "bot")
	if err := s.RemoveEntity(ctx, configNow, "bot", change.Options{IfVersion: bot}); err != nil {
		t.Error(err)
	}
	for _, version := range []string{bot, change.AnyVersion} {
		err = s.RemoveEntity(ctx, configNow, "bot", change.Options{IfVersion: version})
		wantConflict(t, err, "deleted meanwhile")
	}
	// An entity that is declared again is another one.
	s.mustEntity(t, "bot", "", false)
	wantConflict(t, s.RemoveEntity(ctx, configNow, "bot", change.Options{IfVersion: bot}), "has changed")
	last := s.entityVersion(t, "acme")
	if err := s.RemoveEntity(ctx, configNow, "acme", change.Options{IfVersion: last}); err != nil {
		t.Error(err)
	}
	if registry, err := s.EntityConfigResources(ctx); err != nil || len(registry) != 0 {
		t.Errorf("the registry has %v, %v", registry, err)
	}
}

// TestMetadataBounds writes metadata at the bounds of DynamoDB, and beyond, on an entity that is
// created and on one that is changed. The audit has them too.
func TestMetadataBounds(t *testing.T) {
	t.Parallel()
	s := configured(t)
	l, err := limiter.New(s, &limiter.Options{StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	nested := func(n int) any {
		var v any = "x"
		for range n {
			v = []any{v}
		}
		return v
	}
	for i, c := range []struct {
		value any
		want  string
	}{
		{nested(29), ""},
		{nested(30), "is nested deeper than 29 levels"},
		{json.Number("1.50"), ""},
		{json.Number("-0." + strings.Repeat("9", 38) + "e126"), ""},
		{json.Number("1e-130"), ""},
		{json.Number("1e126"), "is a number outside"},
		{json.Number(strings.Repeat("1", 39)), "has more than 38 digits"},
	} {
		for _, b := range []string{"created", "changed"} {
			m := map[string]any{"a": c.value, "b": b}
			_, err := l.ChangeEntity(t.Context(), "e"+strconv.Itoa(i), &change.Entity{Metadata: m}, nil)
			if c.want == "" && err != nil {
				t.Errorf("%.40v: %v", c.value, err)
			}
			if c.want != "" && (!errors.Is(err, weir.Invalid) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%.40v: got %v, want %s", c.value, err, c.want)
			}
		}
	}
	m := map[string]any{"n": json.Number("1.50")}
	first, err := l.ChangeEntity(t.Context(), "same", &change.Entity{Metadata: m}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m["n"] = json.Number("1.5") // as DynamoDB writes it
	for _, o := range []*change.Options{nil, {IfVersion: "old"}} {
		again, err := l.ChangeEntity(t.Context(), "same", &change.Entity{Metadata: m}, o)
		if err != nil || again != first {
			t.Errorf("the same number again: got %q, %v; want %q", again, err, first)
		}
	}
}

// TestPythonChangesVersions checks that a change by the Python library between the read and the
// write is noticed.
func TestPythonChangesVersions(t *testing.T) {
	t.Parallel()
	s := withPython(t)
	ctx := t.Context()
	limits := func(n int64) []map[string]any { return []map[string]any{pyLimit("rpm", n, n, 60)} }
	setLimits := func(at weir.Subject, n int64) pyStep {
		switch {
		case at.Entity != "" && at.Resource == weir.DefaultResource:
			return pyStep{"set_limits", map[string]any{"entity_id": at.Entity, "limits": limits(n)}}
		case at.Entity != "":
			return pyStep{"set_limits", map[string]any{
				"entity_id": at.Entity, "resource": at.Resource, "limits": limits(n),
			}}
		case at.Resource != "":
			return pyStep{"set_resource_defaults", map[string]any{"resource": at.Resource, "limits": limits(n)}}
		}
		return pyStep{"set_system_defaults", map[string]any{"limits": limits(n)}}
	}
	s.mustEntity(t, "acme", "", false)
	for _, at := range versionPlaces() {
		s.mustSet(t, at, rate("rpm", 5))
	}
	s.mustEntity(t, "bot", "acme", false)
	placesBefore := map[weir.Subject]string{}
	for _, at := range versionPlaces() {
		placesBefore[at] = s.placeVersion(t, at)
	}
	acme, bot := s.entityVersion(t, "acme"), s.entityVersion(t, "bot")
	var steps []pythonStep
	for _, at := range versionPlaces() {
		steps = append(steps, pythonStep{setLimits(at, 6), ""})
	}
	steps = append(steps,
		pythonStep{pyStep{"delete_entity", map[string]any{"entity_id": "bot"}}, ""},
		pythonStep{pyStep{"create_entity", map[string]any{"entity_id": "bot", "parent_id": "acme"}}, ""},
	)
	s.judgePython(t, steps...)
	for at, version := range placesBefore {
		set := func(version string) error {
			limits, o := []weir.Limit{rate("rpm", 7)}, change.Options{IfVersion: version}
			_, err := s.ChangeLimits(ctx, configNow, at, limits, o)
			return err
		}
		wantConflict(t, set(version), "has changed")
		now := s.placeVersion(t, at)
		if err := set(now); err != nil || now == version {
			t.Errorf("%+v: got version %q after %q, %v", at, now, version, err)
		}
	}
	for name, version := range map[string]string{"acme": acme, "bot": bot} {
		o := change.Options{IfVersion: version}
		_, err := s.ChangeEntity(ctx, configNow, name, &change.Entity{Name: new("x")}, o)
		wantConflict(t, err, "has changed")
		err = s.RemoveEntity(ctx, configNow, name, o)
		wantConflict(t, err, "has changed")
	}
	// A limit that the library has and that weir does not support is a part of the version too.
	at := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	ofPlace := map[string]any{"entity_id": at.Entity, "resource": at.Resource}
	s.judgePython(t, pythonStep{pyStep{"disable_entity", ofPlace}, ""})
	version := s.placeVersion(t, at)
	s.judgePython(t, pythonStep{pyStep{"enable_entity", ofPlace}, ""})
	if now := s.placeVersion(t, at); now == version {
		t.Errorf("the version is still %q", now)
	}
}

// otherWriter is a transport that lets another program write just before a transaction.
type otherWriter struct {
	base  http.RoundTripper
	write func() // made before the next transaction; nil for none
	once  atomic.Bool
}

// RoundTrip sends a request.
func (o *otherWriter) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		if o.write != nil && o.once.CompareAndSwap(false, true) {
			o.write()
		}
	}
	return o.base.RoundTrip(req)
}

// TestWriteJustBefore checks that a write of another program between the last read of a change and
// its transaction is noticed, also if it adds a limit and changes nothing that was there.
func TestWriteJustBefore(t *testing.T) {
	t.Parallel()
	other := &otherWriter{base: http.DefaultTransport}
	s := configured(t, func(table *Table) {
		table.Options.Config.HTTPClient = &http.Client{Transport: other}
	})
	python := configuredOn(t, s)
	at := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	key := schema.EntityConfigKey(s.config.Namespace, at.Entity, at.Resource)
	ctx := t.Context()
	setLimits := func(limits ...weir.Limit) error {
		o := change.Options{IfVersion: s.placeVersion(t, at)}
		_, err := s.ChangeLimits(ctx, configNow, at, limits, o)
		return err
	}
	asEntity := func() change.Options {
		return change.Options{IfVersion: s.entityVersion(t, "acme")}
	}
	putMore := func() { python.putMore(t, key) }
	rename := func() {
		name := schema.String(rand.Text()) // another one each time
		python.also(t, schema.MetaKey(s.config.Namespace, "acme"), schema.Item{"name": name})
	}
	for name, c := range map[string]struct {
		write func()
		do    func() error
	}{
		"limits are set":     {putMore, func() error { return setLimits(rate("rpm", 6)) }},
		"limits are deleted": {putMore, func() error { return setLimits() }},
		"the entity is deleted": {putMore, func() error {
			return s.RemoveEntity(ctx, configNow, "acme", asEntity())
		}},
		"limits set by weir": {
			func() { python.mustSet(t, at, rate("rpm", 5), rate("extra", 9)) },
			func() error { return setLimits(rate("rpm", 6)) },
		},
		"the entity is changed": {rename, func() error {
			_, err := s.ChangeEntity(ctx, configNow, "acme", &change.Entity{Name: new("mine")}, asEntity())
			return err
		}},
	} {
		for _, marked := range []bool{false, true} {
			python.mustEntity(t, "acme", "", false)
			python.mustSet(t, at, rate("rpm", 5))
			if marked {
				o, limits := change.Options{IfVersion: change.AnyVersion}, []weir.Limit{rate("rpm", 4)}
				if _, err := python.ChangeLimits(ctx, configNow, at, limits, o); err != nil {
					t.Fatal(err)
				}
			}
			if wantConflict(t, other.before(t, c.write, c.do), "has changed"); t.Failed() {
				t.Fatalf("%s, marked %v", name, marked)
			}
			item := python.item(t, key)
			if name != "the entity is changed" && item["l_extra_cp"] == nil {
				t.Errorf("%s, marked %v: the other program's limit is lost", name, marked)
			}
		}
	}
}

// TestWriteOfWhatIsThere repeats a change on condition of an old version. The limits are there,
// but the item lacks a key of an index, as those of an old program may: nothing is written,
// because nothing would notice another program's write in between.
func TestWriteOfWhatIsThere(t *testing.T) {
	t.Parallel()
	other := &otherWriter{base: http.DefaultTransport}
	s := configured(t, func(table *Table) {
		table.Options.Config.HTTPClient = &http.Client{Transport: other}
	})
	python := configuredOn(t, s)
	at := weir.Subject{Resource: "gpt-4o"}
	s.mustSet(t, at, rate("rpm", 5))
	key := schema.ResourceConfigKey(s.config.Namespace, at.Resource)
	item := s.item(t, key)
	delete(item, schema.AttrGSI4SK)
	s.put(t, item)
	other.write = func() { python.putMore(t, key) }
	o := change.Options{IfVersion: "old"}
	version, err := s.ChangeLimits(t.Context(), configNow, at, []weir.Limit{rate("rpm", 5)}, o)
	if err != nil || version != s.placeVersion(t, at) || other.once.Load() {
		t.Errorf("got %q, %v, a transaction: %v", version, err, other.once.Load())
	}
}

// before makes a change with a write of another program just before its transaction.
func (o *otherWriter) before(t *testing.T, write func(), do func() error) error {
	t.Helper()
	o.write = write
	o.once.Store(false)
	defer func() { o.write = nil }()
	err := do()
	if !o.once.Load() {
		t.Error("no transaction was sent")
	}
	return err
}

// putMore adds a limit to an item. As the Python library does, it replaces the whole item, without
// what the library does not know.
func (s *Store) putMore(t *testing.T, key schema.Key) {
	t.Helper()
	item := s.item(t, key)
	delete(item, schema.AttrEdition)
	for field, n := range map[string]int64{"cp": 9, "ra": 9, "rp": 60} {
		item["l_extra_"+field] = schema.Number(n)
	}
	s.put(t, item)
}

// configuredOn returns another store on the table of s, with the usual transport.
func configuredOn(t *testing.T, s *Store) *Store {
	t.Helper()
	o := s.options
	cfg := *o.Config
	cfg.HTTPClient = nil
	o.Config = &cfg
	second, err := Open(t.Context(), s.client.TableName, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	return second
}

// TestListResources lists the resources of a table.
func TestListResources(t *testing.T) {
	t.Parallel()
	s := configured(t)
	s.mustSet(t, weir.Subject{Resource: "gpt-4o"}, rate("rpm", 5))
	s.mustSet(t, weir.Subject{Entity: "acme", Resource: "claude"}, rate("rpm", 5))
	s.mustSet(t, weir.Subject{Entity: "acme", Resource: weir.DefaultResource}, rate("rpm", 5))
	s.bucket(t, "somebody", "o4", 0, 1)
	got, err := s.ListResources(t.Context(), configNow)
	if err != nil || strings.Join(got, " ") != "claude gpt-4o o4" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestMetadataOnTable checks that names and metadata come back from a table as they were written,
// and that the version after the write is that of the next read, however DynamoDB writes numbers.
func TestMetadataOnTable(t *testing.T) {
	t.Parallel()
	s := configured(t)
	for _, value := range []any{
		"", "\"'", "<script>", "\u202eabc", "=1+1", "\x00\n", strings.Repeat("x", 60<<10), nil, true,
		int64(-1 << 63), []any{}, map[string]any{"a": []any{int64(1), map[string]any{}}},
	} {
		c := &change.Entity{Name: new("x"), Metadata: map[string]any{"key": value, "שלום": "x"}}
		version, err := s.ChangeEntity(t.Context(), configNow, "acme", c, change.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.ReadEntity(t.Context(), "acme")
		if err != nil || !reflect.DeepEqual(e.Metadata, c.Metadata) || e.Version != version || e.Name != "x" {
			t.Errorf("%.40q: got %.200v, %v; want version %s", value, e, err, version)
		}
	}
	for _, number := range []json.Number{
		"1.50", "1e5", "1E+5", "-0", "0.10", "123456789012345678901234567890", "1e-100", "-0.5e3", "100",
	} {
		c := &change.Entity{Metadata: map[string]any{"n": number}}
		version, err := s.ChangeEntity(t.Context(), configNow, "acme", c, change.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if now := s.entityVersion(t, "acme"); now != version {
			t.Errorf("%s: got version %s after the write and %s by a read", number, version, now)
		}
	}
}
