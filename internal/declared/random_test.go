package declared_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

// dice draws configurations. Names come from small sets, so that two configurations have names in
// common.
type dice struct {
	*rapid.T

	kinds []weir.Kind
}

func (d *dice) intn(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

func (d *dice) limits() []weir.Limit {
	var limits []weir.Limit
	for _, name := range []string{"rpm", "tpm", "x.y-z"} {
		if d.intn(2) == 0 {
			continue
		}
		l := weir.Limit{Name: name, Kind: d.kinds[d.intn(len(d.kinds))], Capacity: int64(1 + d.intn(3))}
		switch l.Kind {
		case weir.Window:
			l.Window = time.Duration(1+d.intn(2)) * time.Second
		case weir.Concurrency:
			l.Timeout = time.Duration(1+d.intn(2)) * time.Minute
		case weir.Budget:
			l.Every, l.Zone, l.Shadow = "month", []string{"", "Europe/Berlin"}[d.intn(2)], d.intn(2) == 0
		default:
			l.RefillAmount = int64(1 + d.intn(2))
		}
		limits = append(limits, l)
	}
	return limits
}

// levels draws limits for some of the names.
func (d *dice) levels(names ...string) map[string][]weir.Limit {
	levels := map[string][]weir.Limit{}
	for _, name := range names {
		if limits := d.limits(); len(limits) > 0 && d.intn(2) == 0 {
			levels[name] = limits
		}
	}
	return levels
}

// definitions draws a configuration in which no cascade reaches more than one level.
func (d *dice) definitions() *weir.Definitions {
	out := &weir.Definitions{
		OnUnavailable: []weir.Policy{weir.Block, weir.Allow}[d.intn(2)], System: d.limits(),
		Resources: d.levels("a", "b/c", "d"), Entities: map[string]weir.EntityDefinition{},
	}
	var declared []string
	names := rapid.Permutation([]string{"u", "v", "w", "x", "y"}).Draw(d.T, "order")
	for _, name := range names[:d.intn(len(names)+1)] {
		e := weir.EntityDefinition{Limits: d.levels("a", "b/c", weir.DefaultResource)}
		if len(declared) > 0 && d.intn(3) > 0 {
			e.Parent = declared[d.intn(len(declared))]
			e.Cascade = d.intn(2) == 0 && !out.Entities[e.Parent].Cascade
		}
		out.Entities[name] = e
		declared = append(declared, name)
	}
	return out
}

// format returns the definitions as a file.
func (d *dice) format(of *weir.Definitions) string {
	text, err := manifest.Format("default", of)
	if err != nil {
		d.Fatal(err)
	}
	return string(text)
}

// check applies one random file after another by apply, and exports each. The plan of the export
// is empty, in every part.
func (d *dice) check(l httpapi.LimitsAdmin) {
	for range 2 + d.intn(2) {
		text := d.format(d.definitions())
		p, err := l.ApplyLimits(d.Context(), &httpapi.LimitsFile{Text: text, Yes: true})
		if err != nil || p.Failed > 0 {
			d.Fatalf("apply: %+v, %v\n%s", p, err, text)
		}
		for _, file := range []string{text, d.export(l)} {
			p, err = l.PlanLimits(d.Context(), &httpapi.LimitsFile{Text: file})
			if err != nil || len(p.Changes)+len(p.Unmanaged) > 0 {
				d.Fatalf("plan after the apply: %+v, %v\n%s", p, err, file)
			}
		}
	}
}

func (d *dice) export(l httpapi.LimitsAdmin) string {
	e, err := l.ExportLimits(d.Context())
	if err != nil || len(e.Foreign) > 0 {
		d.Fatalf("export: %+v, %v", e, err)
	}
	return e.Text
}

// TestRandomFiles applies random files in a row, on a store in memory and on a table.
func TestRandomFiles(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			l := newMemory(t, nil)
			d := &dice{t, []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget}}
			d.check(declared.New(l))
		})
	})
	t.Run("table", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for run := range soak.Amount(6, 60) {
			a := w.open("ann", inNamespace(w.namespace(fmt.Sprintf("run-%d", run))))
			random := rapid.Custom(func(t *rapid.T) []string {
				d := &dice{t, []weir.Kind{weir.Bucket}}
				return []string{d.format(d.definitions()), d.format(d.definitions())}
			})
			for _, text := range random.Example(run) {
				text = text[len("version: 1\nnamespace: default\n"):] // it has another name here
				text = "version: 1\n" + text
				a.apply(text)
				w.wantEqual(a, text)
				e, err := a.ExportLimits(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w.wantEqual(a, e.Text)
			}
		}
	})
}

// fataler is a test of any kind.
type fataler interface {
	Fatal(args ...any)
	Cleanup(f func())
}

// newMemory returns a limiter on a store in memory.
func newMemory(t fataler, d *weir.Definitions) *limiter.Limiter {
	s, err := memory.Open(&memory.Options{Definitions: d})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{CascadeDepth: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}
