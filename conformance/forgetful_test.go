package conformance_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/model"
)

// forgetful is what becomes of a bucket's state on a store that forgets it the moment that it no
// longer applies: under a new key it begins anew.
type forgetful struct {
	mu    sync.Mutex
	turns map[model.Key]int
}

// key is what the state is found by.
func (f *forgetful) key(_ *weir.Limit, k model.Key) model.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	turn := f.turns[k]
	f.turns[k] = turn
	k.Name += strings.Repeat("'", turn)
	return k
}

// replaced forgets the buckets that other limits have replaced.
func (f *forgetful) replaced(by *weir.Definitions) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.turns {
		levels := by.Config(k.Subject).Levels
		applies := func(l weir.Limit) bool { return l.Name == k.Name && l.Kind == k.Kind }
		if len(levels) > 0 && !slices.ContainsFunc(levels[0].Limits, applies) {
			f.turns[k]++
		}
	}
}

// forgetfulWorld is a world whose buckets are forgotten as soon as other limits replace them.
type forgetfulWorld struct {
	conformance.World
	*forgetful
}

func (w forgetfulWorld) Configure(d *weir.Definitions) error {
	normal, err := d.Normalize()
	if err := errors.Join(err, w.World.Configure(d)); err != nil {
		return err
	}
	w.replaced(normal)
	return nil
}

// bucketsOnly is a harness of models with wrong points, as a store that has only buckets. forget
// makes them forgetful besides.
func bucketsOnly(points model.Points, forget bool, lee conformance.Leeway) conformance.Harness {
	h := conformance.ModelHarness(nil)
	calendar := model.NewCalendar()
	h.Open = func(t conformance.T, s conformance.Setup) conformance.World {
		t.Helper()
		f := &forgetful{turns: map[model.Key]int{}}
		own := points
		if forget {
			own.Key = f.key
		}
		w, err := conformance.OpenModel(s, true, calendar, &own)
		if err != nil {
			t.Fatalf("open the model: %v", err)
		}
		if forget {
			return forgetfulWorld{w, f}
		}
		return w
	}
	h.Traits.Kinds = []weir.Kind{weir.Bucket}
	h.Traits.NoShadow = true
	h.Leeway = lee
	return h
}

// TestLeewayIsTaken: a store that does what a leeway allows passes with it, and not without.
func TestLeewayIsTaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		points model.Points
		forget bool
		with   conformance.Leeway
	}{
		{"removed buckets are forgotten", model.Points{}, true, conformance.Leeway{RemovedForgotten: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const seed, ops = 1, 10_000
			with, without := bucketsOnly(c.points, c.forget, c.with), bucketsOnly(c.points, c.forget, conformance.Leeway{})
			if got := conformance.FirstDifference(t, with, seed, ops); got != "" {
				t.Errorf("with the leeway: %s", got)
			}
			if conformance.FirstDifference(t, without, seed, ops) == "" {
				t.Error("without the leeway: no difference was found")
			}
			if titles := failing(t, with); len(titles) > 0 {
				t.Errorf("with the leeway: failed %q", titles)
			}
			if titles := failing(t, without); len(titles) == 0 {
				t.Error("without the leeway: no case failed")
			} else {
				t.Logf("without the leeway: %q", titles)
			}
		})
	}
}

// failing are the cases about changed limits that a harness with buckets only fails.
func failing(t *testing.T, h conformance.Harness) []string {
	t.Helper()
	var titles []string
	for _, c := range conformance.Cases() {
		if !strings.HasPrefix(c.Line, "8.") || !slices.Equal(c.Needs.Kinds, h.Traits.Kinds) {
			continue
		}
		if conformance.Record(t, func(t conformance.T) { c.Run(t, h) }).Failed {
			titles = append(titles, c.Title())
		}
	}
	return titles
}
