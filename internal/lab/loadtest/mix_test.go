package loadtest_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

// TestMix checks that requests come as often as their weights say, that every entity of a row is
// equally likely, that amounts are drawn from the whole range, and that the draws depend on the
// seed only.
func TestMix(t *testing.T) {
	t.Parallel()
	texts := []string{"3x tenant-{1..10} gpt-4o rpm=1 tpm=500..1499", "1x hot/{7..7} gpt-4o tpm=0..1", "solo embed"}
	asked := func(seed uint64) []*weir.Request {
		var out []*weir.Request
		synctest.Test(t, func(t *testing.T) {
			f := newFakeService()
			f.takes = time.Millisecond
			o := &loadtest.Options{Duration: 10 * time.Second, Rate: 1000, Seed: seed, CancelPercent: 20}
			r := runLoad(t, f, o, texts...)
			out = f.asked
			if n := r.Count(loadtest.Cancel, loadtest.Done); n < 1800 || n > 2200 || int64(f.cancelled) < n {
				t.Errorf("got %d of 10,000 cancelled, want a fifth", n)
			}
		})
		return out
	}
	requests := asked(1)
	counts := map[string]int{}
	sums := map[string]int64{}
	for _, r := range requests {
		counts[r.Entity+" "+r.Resource]++
		sums[r.Resource] += r.Costs["rpm"]
		for name, n := range r.Costs {
			band := n
			if r.Costs["rpm"] == 1 {
				band = n / 100 // ten classes of tpm
			}
			if name == "tpm" {
				counts[fmt.Sprint(len(r.Costs), " tpm ", band)]++
			}
		}
	}
	// The bounds are five standard deviations; the seed is fixed, so the result never changes.
	band := func(what string, got, want, within int) {
		if got < want-within || got > want+within {
			t.Errorf("%s: got %d, want %d ± %d", what, got, want, within)
		}
	}
	tenants := 0
	for i := 1; i <= 10; i++ {
		n := counts[fmt.Sprintf("tenant-%d gpt-4o", i)]
		tenants += n
		band(fmt.Sprint("tenant ", i), n, 600, 119)
		band(fmt.Sprint("tpm band ", i+4), counts[fmt.Sprint("2 tpm ", i+4)], 600, 119)
	}
	band("all tenants", tenants, 6000, 245)
	band("hot", counts["hot/7 gpt-4o"], 2000, 200)
	band("solo", counts["solo embed"], 2000, 200)
	band("tpm=0", counts["1 tpm 0"], 1000, 150)
	band("tpm=1", counts["1 tpm 1"], 1000, 150)
	if len(requests) != 10_000 || sums["gpt-4o"] != int64(tenants) || sums["embed"] != 0 {
		t.Errorf("got %d requests and sums %v", len(requests), sums)
	}
	if again := asked(1); !reflect.DeepEqual(again[:1000], requests[:1000]) {
		t.Error("the same seed asked something else")
	}
	if other := asked(2); reflect.DeepEqual(other[:1000], requests[:1000]) {
		t.Error("another seed asked the same")
	}
}

// TestParseTemplate checks which templates are accepted, and that all mistakes of one are reported.
func TestParseTemplate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a llm": "", " 7x a llm ": "", "1x 3x llm": "", "a-{1..5}-b llm x=0": "", "a llm rpm=1 tpm=5..5": "",
		"a llm x=9223372036854775807": "", "a llm x=0..9223372036854775807": "",
		"":                                   `invalid: request "": must be [Nx] ENTITY RESOURCE [NAME=N...]`,
		"a":                                  `request "a": must be`,
		"3x llm":                             `request "3x llm": must be`,
		"a rpm=1":                            `request "a rpm=1": must be`,
		"0x a llm":                           `weight "0x": must be from 1x to 1000000x`,
		"1000001x a llm":                     `weight "1000001x": must be`,
		"a{1..2} llm rpm":                    `costs "rpm": must be NAME=N or NAME=A..B`,
		"a llm =1":                           `costs "=1": must be NAME=N`,
		"a llm rpm=":                         `costs.rpm "": must be a whole number in decimal digits, or two like 500..4000`,
		"a llm rpm=-1":                       `costs.rpm "-1": must be a whole`,
		"a llm rpm=1.5":                      `costs.rpm "1.5": must be a whole`,
		"a llm rpm=1..":                      `costs.rpm "1..": must be a whole`,
		"a llm rpm=1..2..3":                  `costs.rpm "1..2..3": must be a whole`,
		"a llm rpm=+1":                       `costs.rpm "+1": must be a whole`,
		"a llm rpm=5..4":                     `costs.rpm "5..4": must not end before it begins`,
		"a llm rpm=1 rpm=1":                  `costs.rpm "rpm=1": is given twice`,
		"a{ llm":                             `entity "a{": must have at most one range, like tenant-{1..100}`,
		"a{1} llm":                           `entity "a{1}": must have at most one range`,
		"a{x..y} llm":                        `at most one range`,
		"a{1..2}{1..2} llm":                  `at most one range`,
		"a{2..1} llm":                        `entity "a{2..1}": must not end before it begins`,
		"a{1..9999999999} l":                 `entity "a{1..9999999999}": must end at 999999999 or before`,
		"a llm x=9223372036854775808":        `costs.x "9223372036854775808": must be at most 9223372036854775807`,
		"0x a{ llm rpm=x":                    `weight "0x"`,
		"a llm" + strings.Repeat(" x=1", 33): `costs "33": a request has at most 32`,
	} {
		_, err := loadtest.ParseTemplate(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
		if err != nil && !errors.Is(err, weir.Invalid) {
			t.Errorf("%q: got %v, want it invalid", text, err)
		}
	}
	_, err := loadtest.ParseTemplate("0x a{ llm rpm=x tpm=1")
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != 3 {
		t.Errorf("got %q, want three mistakes", lines)
	}
}

// TestParseMix checks that a file has a template on each line, and that each mistake names its
// line.
func TestParseMix(t *testing.T) {
	t.Parallel()
	mix, err := loadtest.ParseMix("m.txt", []byte("# a mix\n\n3x a llm rpm=1 # hot\r\nb-{1..9} llm\n"))
	if err != nil || len(mix) != 2 || mix[0].Weight != 3 || mix[1].Weight != 1 {
		t.Errorf("got %+v and %v, want two", mix, err)
	}
	for text, want := range map[string]string{
		"":                              "m.txt: has no requests",
		"# nothing\n":                   "m.txt: has no requests",
		"a llm\nb\n\nc llm x=y":         "m.txt:2: weir: invalid: request \"b\": must be [Nx] ENTITY RESOURCE [NAME=N...]\nm.txt:4: weir: invalid: costs.x \"y\": must be a whole number in decimal digits, or two like 500..4000",
		"a llm x=y y=z":                 "m.txt:1: weir: invalid: costs.x \"y\": must be a whole number in decimal digits, or two like 500..4000\nm.txt:1: weir: invalid: costs.y \"z\": must be a whole number in decimal digits, or two like 500..4000",
		strings.Repeat("a llm\n", 1001): "m.txt:1001: is one request too many: a file has at most 1000",
	} {
		if mix, err := loadtest.ParseMix("m.txt", []byte(text)); err == nil || err.Error() != want || mix != nil {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzParseTemplate checks that no text breaks the parser, and that every accepted template can be
// run.
func FuzzParseTemplate(f *testing.F) {
	for _, text := range []string{"a llm", "3x t-{1..9}-x llm rpm=1 tpm=5..10", "0x a{ llm rpm", "\xff {..} ="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		template, err := loadtest.ParseTemplate(text)
		if err != nil {
			if !errors.Is(err, weir.Invalid) {
				t.Fatalf("%q: got %v, want it invalid", text, err)
			}
			return
		}
		if template.Weight < 1 || template.Resource == "" {
			t.Fatalf("%q: got %+v", text, template)
		}
		if again, err := loadtest.ParseTemplate(template.String()); err != nil || !reflect.DeepEqual(again, template) {
			t.Fatalf("%q: got %v and %v again, want %v", text, again, err, template)
		}
		for _, a := range template.Costs {
			if a.Least < 0 || a.Least > a.Most || a.Limit == "" {
				t.Fatalf("%q: got %+v", text, a)
			}
		}
		if _, err := loadtest.New(newFakeService(), []loadtest.Template{*template}, nil); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
