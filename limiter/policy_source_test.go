package limiter_test

import (
	"context"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// oneChild is a store whose configuration has a parent for the entity child only.
type oneChild struct{ *fakeStore }

func (s *oneChild) ReadConfig(ctx context.Context, of weir.Subject, consistent bool) (*weir.Config, error) {
	config, err := s.fakeStore.ReadConfig(ctx, of, consistent)
	if err != nil {
		return nil, err
	}
	c := *config
	c.Known = true
	if of.Entity == "child" {
		c.Parent, c.Cascade = "parent", true
	}
	return &c, nil
}

// TestExplainSaysThePolicy checks the policy in an explanation and its source: the limiter's
// options take precedence over the system's configuration, and without both the policy is block.
func TestExplainSaysThePolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		options, system weir.Policy
		want            weir.Policy
		from            weir.PolicySource
	}{
		{"neither", "", "", weir.Block, weir.PolicyFromDefault},
		{"system blocks", "", weir.Block, weir.Block, weir.PolicyFromSystem},
		{"system allows", "", weir.Allow, weir.Allow, weir.PolicyFromSystem},
		{"options allow", weir.Allow, "", weir.Allow, weir.PolicyFromLimiter},
		{"options over system", weir.Block, weir.Allow, weir.Block, weir.PolicyFromLimiter},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := newFakeStore()
			fake.config.OnUnavailable = c.system
			l, err := limiter.New(&oneChild{fake}, &limiter.Options{OnUnavailable: c.options})
			if err != nil {
				t.Fatal(err)
			}
			for _, read := range []string{"from the store", "from the cache"} {
				e, err := l.Explain(t.Context(), "child", "r")
				if err != nil {
					t.Fatal(err)
				}
				if e.OnUnavailable != c.want || e.OnUnavailableFrom != c.from {
					t.Errorf("%s: got %s from %s, want %s from %s", read, e.OnUnavailable,
						e.OnUnavailableFrom, c.want, c.from)
				}
				if p := e.Parent; p == nil || p.OnUnavailable != "" || p.OnUnavailableFrom != "" {
					t.Errorf("%s: got parent %+v, want one without a policy", read, p)
				}
			}
		})
	}
}

// TestExplainSaysTheChangedPolicy checks that a policy set through the limiter is in the next
// explanation, although the limits come from the cache. The memory store always has a policy.
func TestExplainSaysTheChangedPolicy(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, p := range []weir.Policy{weir.Block, weir.Allow, weir.Block} {
		if err := l.SetPolicy(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		e, err := l.Explain(t.Context(), "a", "r")
		if err != nil || e.OnUnavailable != p || e.OnUnavailableFrom != weir.PolicyFromSystem {
			t.Errorf("got %+v, %v, want %s from the system's configuration", e, err, p)
		}
	}
}
