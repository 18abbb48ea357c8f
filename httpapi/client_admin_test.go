package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/server/statuspage"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// adminStep calls an Admin, and returns the result in plain values.
type adminStep struct {
	name string
	do   func(ctx context.Context, a httpapi.Admin) (any, error)
}

// adminSteps is a list of steps. Its methods append to it.
type adminSteps []adminStep

func (s *adminSteps) add(name string, do func(ctx context.Context, a httpapi.Admin) (any, error)) {
	*s = append(*s, adminStep{name, do})
}

func (s *adminSteps) change(name string, do func(ctx context.Context, a httpapi.Admin) error) {
	s.add(name, func(ctx context.Context, a httpapi.Admin) (any, error) { return nil, do(ctx, a) })
}

func (s *adminSteps) set(at weir.Subject, put ...weir.Limit) {
	s.change(
		fmt.Sprintf("set limits of %+v to %v", at, put),
		func(ctx context.Context, a httpapi.Admin) error {
			return a.SetLimits(ctx, at, put)
		},
	)
	s.add(fmt.Sprintf("limits of %+v", at), func(ctx context.Context, a httpapi.Admin) (any, error) {
		limits, err := a.Limits(ctx, at)
		return slices.Concat(limits), err
	})
}

func (s *adminSteps) entity(name string) {
	s.add("entity "+name, func(ctx context.Context, a httpapi.Admin) (any, error) {
		e, err := a.Entity(ctx, name)
		if err != nil {
			return nil, err
		}
		return fmt.Sprintf("%+v", *e), nil
	})
}

func (s *adminSteps) setEntity(name, parent string, cascade bool) {
	s.change("set entity "+name, func(ctx context.Context, a httpapi.Admin) error {
		return a.SetEntity(ctx, name, parent, cascade)
	})
	s.entity(name)
}

func (s *adminSteps) remove(name string) {
	s.change("delete "+name, func(ctx context.Context, a httpapi.Admin) error {
		return a.DeleteEntity(ctx, name)
	})
	s.entity(name)
}

func (s *adminSteps) list(q *weir.EntityQuery) {
	s.add(fmt.Sprintf("entities %+v", q), func(ctx context.Context, a httpapi.Admin) (any, error) {
		page, err := a.Entities(ctx, q)
		if err != nil {
			return nil, err
		}
		return append(slices.Concat(page.Names), "next", page.Next), nil
	})
}

func (s *adminSteps) policy(p weir.Policy) {
	s.change(
		"policy "+string(p),
		func(ctx context.Context, a httpapi.Admin) error { return a.SetPolicy(ctx, p) },
	)
	s.add("policy", func(ctx context.Context, a httpapi.Admin) (any, error) { return a.Policy(ctx) })
}

func (s *adminSteps) retention(r weir.Retention) {
	s.change(
		fmt.Sprintf("set retention %+v", r),
		func(ctx context.Context, a httpapi.Admin) error { return a.SetRetention(ctx, r) },
	)
	s.add("retention", func(ctx context.Context, a httpapi.Admin) (any, error) { return a.Retention(ctx) })
}

func (s *adminSteps) capacity(resource string) {
	s.add("capacity "+resource, func(ctx context.Context, a httpapi.Admin) (any, error) {
		statuses, err := a.Capacity(ctx, resource)
		return slices.Concat(statuses), err
	})
}

// everyAdminStep calls every method, with valid and invalid names and limits.
func everyAdminStep() adminSteps {
	rpm := weir.Limit{Name: "rpm", Capacity: 10}
	all := []weir.Limit{
		rpm,
		{Name: "tpm", Capacity: 9223372036854775, RefillAmount: 1, RefillPeriod: 1500 * time.Millisecond},
		{Name: "win", Kind: weir.Window, Capacity: 5, Window: time.Hour, Shadow: true},
		{Name: "par", Kind: weir.Concurrency, Capacity: 3, Timeout: time.Minute},
		{Name: "usd", Kind: weir.Budget, Capacity: 7, Every: "month", Zone: "Europe/Berlin"},
	}
	wrong := []weir.Limit{
		{
			Name:     "a b",
			Capacity: 1,
		},
		{Name: "n", Capacity: -1, Window: time.Second},
		{Name: "k", Kind: "leaky"},
	}
	var s adminSteps
	s.policy(weir.Allow)
	s.policy("perhaps")
	s.retention(weir.Retention{UsageDays: new(int64(7))}) // not supported
	s.set(weir.Subject{}, all...)
	s.set(weir.Subject{}, wrong...)
	s.set(weir.Subject{}, rpm, rpm)
	s.set(weir.Subject{Resource: "openai/gpt-4o"}, all...)
	s.set(weir.Subject{Resource: weir.DefaultResource}, rpm)
	for i, name := range []string{"acme", "org/team", "a/../b", "a//b", "a.b:c@d-e_f", "0"} {
		s.setEntity(name, "", false)
		s.set(weir.Subject{Entity: name, Resource: "m"}, all[i%len(all)])
		s.set(weir.Subject{Entity: name, Resource: weir.DefaultResource}, rpm)
	}
	s.badNames(rpm)
	s.lists()
	s.remove("acme") // has a child
	s.remove("child")
	s.remove("acme")
	s.remove("acme")
	s.set(weir.Subject{})
	s.set(weir.Subject{Resource: "openai/gpt-4o"})
	s.set(weir.Subject{Entity: "org/team", Resource: "m"})
	return s
}

func (s *adminSteps) badNames(limit weir.Limit) {
	for _, name := range []string{
		"", ".", "..", "a b", "ä", "\xff", "a?b", "a#b", "a%2Fb", "-a", strings.Repeat("x", 300),
	} {
		s.setEntity(name, "", false)
		s.setEntity("acme", name, true)
		s.set(weir.Subject{Entity: name, Resource: "m"}, limit)
		s.set(weir.Subject{Entity: "acme", Resource: name}, limit)
		s.set(weir.Subject{Resource: name}, limit)
		s.list(&weir.EntityQuery{Parent: name})
		s.list(&weir.EntityQuery{Resource: name})
		s.capacity(name)
		s.remove(name)
	}
}

func (s *adminSteps) lists() {
	s.setEntity("child", "acme", true)
	s.setEntity("acme", "child", true)
	s.setEntity("acme", "nobody", false)
	for _, size := range []int{0, 1, 2, 1000, 1001, -1} {
		s.list(&weir.EntityQuery{Size: size})
		s.list(&weir.EntityQuery{Size: size, After: "acme"})
		s.list(&weir.EntityQuery{Size: size, Parent: "acme", Resource: "m"})
	}
	s.list(nil)
	s.list(&weir.EntityQuery{Parent: "acme"})
	s.list(&weir.EntityQuery{Resource: "m"})
	s.list(&weir.EntityQuery{Resource: weir.DefaultResource})
	s.capacity("m")
}

// TestClientAdminEqualsLimiter checks that the client answers as the limiter does, to the last
// member of every error.
func TestClientAdminEqualsLimiter(t *testing.T) {
	t.Parallel()
	setup := conformance.Setup{
		Start:       time.Date(2025, 6, 18, 12, 0, 0, 0, time.UTC),
		Definitions: &weir.Definitions{},
	}
	setup.Options.CascadeDepth = 8
	w := openClientWorld(t, setup, httpapi.ClientOptions{}, overPipes)
	defer func() { _ = w.Close() }()
	store, err := memory.Open(&memory.Options{Definitions: setup.Definitions})
	if err != nil {
		t.Fatal(err)
	}
	setup.Options.Now = w.Now
	lim, err := limiter.New(store, &setup.Options)
	if err != nil {
		t.Fatal(err)
	}
	steps := everyAdminStep()
	failed := 0
	for _, step := range steps {
		got, gotErr := step.do(t.Context(), w.Client)
		want, wantErr := step.do(t.Context(), lim)
		if g, f := sortedFaults(gotErr), sortedFaults(wantErr); g != f {
			t.Errorf("%s: got error %s, the limiter says %s", step.name, g, f)
		}
		if wantErr != nil {
			failed++
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, the limiter says %v", step.name, got, want)
		}
	}
	t.Logf("%d steps, %d of them mistakes", len(steps), failed)
	if failed < 50 || len(steps)-failed < 50 {
		t.Errorf("got %d mistakes in %d steps, want many of both", failed, len(steps))
	}
}

// sortedFaults is [faultText] in sorted order, because limits on the wire have no order.
func sortedFaults(err error) string {
	lines := strings.Split(faultText(err), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestNotes(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	const note = "applies until the next restart"
	net := overPipes(t, httphandler.New(lim, &httphandler.Options{Admin: lim, AdminNote: note}))
	defer func() { _ = net.close() }()
	var notes []string
	c, err := httpapi.NewClient(net.url, &httpapi.ClientOptions{
		HTTPClient: net.client, Note: func(text string) { notes = append(notes, text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, change := range map[string]func() error{
		"limits":       func() error { return c.SetLimits(ctx, weir.Subject{}, []weir.Limit{{Name: "n", Capacity: 1}}) },
		"no limits":    func() error { return c.SetLimits(ctx, weir.Subject{Resource: "m"}, nil) },
		"policy":       func() error { return c.SetPolicy(ctx, weir.Allow) },
		"an entity":    func() error { return c.SetEntity(ctx, "a", "", false) },
		"no entity":    func() error { return errors.Join(c.SetEntity(ctx, "b", "", false), c.DeleteEntity(ctx, "b")) },
		"what is read": func() error { _, err := c.Policy(ctx); return err },
		"what fails": func() error {
			if err := c.SetPolicy(ctx, "x"); err == nil {
				return errors.New("was accepted")
			}
			return nil
		},
	} {
		notes = nil
		if err := change(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := map[string]int{"no entity": 2, "what is read": 0, "what fails": 0}
		n, ok := want[name]
		if !ok {
			n = 1
		}
		if len(notes) != n || n > 0 && notes[0] != note {
			t.Errorf("%s: got notes %q, want %d", name, notes, n)
		}
	}
}

// TestDeleteRepeated checks that a repeated deletion succeeds if the answer to the first attempt
// was lost and the entity is not found.
func TestDeleteRepeated(t *testing.T) {
	t.Parallel()
	for _, lost := range []int{0, 1} {
		s := newStub(t, func(n int, w http.ResponseWriter, _ string) {
			if n <= lost {
				badGateway(w)
				return
			}
			w.Header().Set("Content-Type", problemType)
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status":404,"code":"not found","field":"entity","value":"a"}`))
		})
		err := s.client(t, httpapi.ClientOptions{}).DeleteEntity(t.Context(), "a")
		if lost == 0 && !errors.Is(err, weir.NotFound) || lost > 0 && err != nil {
			t.Errorf("%d lost: got %v", lost, err)
		}
	}
}

// TestAnswerAboutAnotherEntity checks that the client does not accept an answer about another
// entity.
func TestAnswerAboutAnotherEntity(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(_ int, w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write([]byte(`{"entity":"b","note":"hello"}`))
	})
	c := s.client(t, httpapi.ClientOptions{Note: func(text string) { t.Errorf("got note %q", text) }})
	expectUnavailable(t, "set entity", c.SetEntity(t.Context(), "a", "", false))
	expectUnavailable(t, "delete entity", c.DeleteEntity(t.Context(), "a"))
}

func TestReadyAndActivity(t *testing.T) {
	t.Parallel()
	ready := errors.New("not yet")
	handler := httphandler.New(
		&failing{},
		&httphandler.Options{Ready: func(context.Context) error { return ready }},
	)
	net := overPipes(t, handler)
	defer func() { _ = net.close() }()
	c, err := httpapi.NewClient(net.url, &httpapi.ClientOptions{HTTPClient: net.client, Backoff: 1})
	if err != nil {
		t.Fatal(err)
	}
	expectUnavailable(t, "not ready", c.Ready(t.Context()))
	ready = nil
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	if _, err := c.Activity(t.Context()); !errors.Is(err, weir.Invalid) {
		t.Errorf("activity of a server that counts nothing: got %v", err)
	}
}

func TestActivityArrivesUnchanged(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 6, 18, 12, 0, 0, 0, time.UTC)
	activity := statuspage.NewActivity(now)
	store, err := memory.Open(&memory.Options{
		Definitions: &weir.Definitions{System: []weir.Limit{{Name: "n", Capacity: 1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, &limiter.Options{Observer: activity, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	net := overPipes(t, httphandler.New(lim, &httphandler.Options{
		Activity: activity.Report, Now: func() time.Time { return now },
	}))
	defer func() { _ = net.close() }()
	c, err := httpapi.NewClient(net.url, &httpapi.ClientOptions{
		HTTPClient: net.client, Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // one is admitted, one is denied
		_, _ = c.Reserve(t.Context(), &plainRequest)
	}
	got, err := c.Activity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := activity.Report(now); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Admitted != 1 || got.Denied != 1 {
		t.Errorf("got %d admitted and %d denied, want one of each", got.Admitted, got.Denied)
	}
}
