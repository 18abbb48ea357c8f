package manifest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	m := parseFile(t, "testdata/design.yaml")
	got, err := manifest.Format(m.Namespace, m.Definitions)
	if err != nil {
		t.Fatal(err)
	}
	want := `version: 1
namespace: default
system:
  on_unavailable: block
  limits:
    rpm: {capacity: 600}
resources:
  gpt-4o:
    limits:
      parallel: {kind: concurrency, capacity: 20, timeout: 300}
      rpm: {capacity: 500}
      tpm: {capacity: 200000, refill_amount: 100000}
entities:
  acme: {}
  acme-bot:
    parent: acme
    cascade: true
    resources:
      gpt-4o:
        limits:
          hourly: {kind: window, capacity: 2000, window: 3600}
          parallel: {kind: concurrency, capacity: 5, timeout: 300}
          rpm: {capacity: 100}
          tpm: {capacity: 50000}
          usd_micros: {kind: budget, capacity: 50000000, every: month, zone: Europe/Berlin, enforce: false}
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFormatEmpty(t *testing.T) {
	t.Parallel()
	got, err := manifest.Format("a", &weir.Definitions{
		OnUnavailable: weir.Allow,
		Resources:     map[string][]weir.Limit{"r": nil},
		Entities: map[string]weir.EntityDefinition{
			"e":    {Limits: map[string][]weir.Limit{"r": {}}},
			"true": {Parent: "e", Limits: map[string][]weir.Limit{"r": {}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `version: 1
namespace: a
system:
  on_unavailable: allow
entities:
  e: {}
  "true":
    parent: e
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	parse(t, string(got))
}

func TestFormatRefuses(t *testing.T) {
	t.Parallel()
	slow := []weir.Limit{{Name: "rpm", Capacity: 1, RefillPeriod: 1500 * time.Millisecond}}
	_, err := manifest.Format("/", &weir.Definitions{
		System:   slow,
		Entities: map[string]weir.EntityDefinition{"e": {Limits: map[string][]weir.Limit{"r": slow}}},
	})
	want := `weir: invalid: namespace "/": must begin with a letter or a digit and have only letters, digits and _ . : @ -
weir: invalid: system.limits.rpm.refill_period "1.5s": must be whole seconds in a limits file
weir: invalid: entities.e.resources.r.limits.rpm.refill_period "1.5s": must be whole seconds in a limits file`
	if fmt.Sprint(err) != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	_, err = manifest.Format("default", &weir.Definitions{System: []weir.Limit{{Name: "rpm"}}})
	if !errors.Is(err, weir.Invalid) {
		t.Errorf("got %v, want an invalid capacity", err)
	}
}

// TestRoundTrip formats random definitions and parses them again.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		d := normal(t, randomDefinitions(r))
		text, err := manifest.Format("ns-1", d)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse("limits.yaml", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if m.Namespace != "ns-1" || !reflect.DeepEqual(m.Definitions, d) {
			t.Fatalf("got %+v, want %+v, from\n%s", m.Definitions, d, text)
		}
		if changes := manifest.Diff(d, m.Definitions); len(changes) > 0 {
			t.Fatalf("got changes %s", lines(changes))
		}
		checkDiff(t, d, normal(t, randomDefinitions(r)))
	}
}

// randomName returns a valid name. It begins with a letter, as every identifier may.
func randomName(r *rand.Rand, alphabet string) string {
	if words := strings.Fields("true no null y on a.limits rpm"); r.IntN(4) == 0 {
		return words[r.IntN(len(words))]
	}
	name := []byte{"abnyxABZ"[r.IntN(8)]}
	for range r.IntN(4) {
		name = append(name, alphabet[r.IntN(len(alphabet))])
	}
	return string(name)
}

func randomLimits(r *rand.Rand) []weir.Limit {
	byName := map[string]weir.Limit{}
	for range 1 + r.IntN(4) {
		l := weir.Limit{
			Name: randomName(r, "ab01_.-"), Capacity: 1 + r.Int64N(1<<r.IntN(50)), Shadow: r.IntN(4) == 0,
		}
		seconds := time.Duration(1+r.Int64N(100_000)) * time.Second
		switch r.IntN(4) {
		case 0:
			l.Kind, l.Window = weir.Window, seconds
		case 1:
			l.Kind, l.Timeout = weir.Concurrency, seconds
		case 2:
			l.Kind, l.Every = weir.Budget, []string{"hour", "day", "week", "month"}[r.IntN(4)]
			l.Zone = []string{"", "UTC", "Europe/Berlin", "Etc/GMT+5"}[r.IntN(4)]
		default:
			if r.IntN(2) == 0 {
				l.RefillAmount, l.RefillPeriod = 1+r.Int64N(1000), seconds
			}
		}
		byName[l.Name] = l
	}
	var limits []weir.Limit
	for _, l := range byName {
		limits = append(limits, l)
	}
	return limits
}

func randomLevels(r *rand.Rand) map[string][]weir.Limit {
	levels := map[string][]weir.Limit{}
	for range r.IntN(4) {
		levels[randomName(r, "ab01_.-/")] = randomLimits(r)
	}
	return levels
}

func randomDefinitions(r *rand.Rand) *weir.Definitions {
	d := &weir.Definitions{Resources: randomLevels(r), Entities: map[string]weir.EntityDefinition{}}
	if r.IntN(2) == 0 {
		d.System = randomLimits(r)
	}
	d.OnUnavailable = []weir.Policy{"", weir.Block, weir.Allow}[r.IntN(3)]
	for i, setting := range []**int64{
		&d.Retention.UsageDays, &d.Retention.AuditDays, &d.Retention.TTLMultiplier,
	} {
		if r.IntN(3) == 0 {
			*setting = new([]int64{1, 1, 2}[i] + r.Int64N(weir.MaxRetentionDays-1))
		}
	}
	parent := ""
	for range r.IntN(6) {
		name := randomName(r, "ab01_.-:@/")
		if r.IntN(3) == 0 {
			name = fmt.Sprint(r.IntN(1000)) + name[:1]
		}
		if _, taken := d.Entities[name]; taken {
			continue
		}
		e := weir.EntityDefinition{Limits: randomLevels(r)}
		if r.IntN(2) == 0 {
			e.Parent = parent
			e.Cascade = parent != "" && r.IntN(2) == 0
		}
		if r.IntN(2) == 0 {
			e.Name, e.Metadata = withoutControls(randomText(r)), randomMetadata(r)
		}
		if r.IntN(3) == 0 {
			e.Limits[weir.DefaultResource] = randomLimits(r)
		}
		d.Entities[name] = e
		parent = name
	}
	return d
}

// FuzzParse checks that no input panics, that a refusal has a position, and that what is parsed is
// the same after it is formatted and parsed again.
func FuzzParse(f *testing.F) {
	for _, seed := range parseSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := manifest.Parse("limits.yaml", []byte(text))
		if err != nil {
			checkErrors(t, "limits.yaml", text)
			return
		}
		again := normal(t, m.Definitions)
		if !reflect.DeepEqual(again, m.Definitions) {
			t.Errorf("not normalized: %+v, want %+v", m.Definitions, again)
		}
		written, err := manifest.Format(m.Namespace, m.Definitions)
		if err != nil {
			t.Fatal(err)
		}
		back, err := manifest.Parse("written.yaml", written)
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if back.Namespace != m.Namespace || !reflect.DeepEqual(back.Definitions, m.Definitions) {
			t.Errorf("got %+v, want %+v, from\n%s", back.Definitions, m.Definitions, written)
		}
		manifest.Hidden(m.Definitions)
	})
}
