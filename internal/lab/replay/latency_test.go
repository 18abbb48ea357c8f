package replay

import (
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/lab/trace"
)

func TestParseLatency(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Latency{
		"0":                      {},
		"0s+0s":                  {},
		"400ms":                  {Base: 400 * time.Millisecond},
		"400ms+15ms":             {400 * time.Millisecond, 15 * time.Millisecond},
		"1.5s+100us":             {1500 * time.Millisecond, 100 * time.Microsecond},
		"0+1ns":                  {0, 1},
		"59m59.999s+2562047h47m": {trace.MaxCallMS * time.Millisecond, 2562047*time.Hour + 47*time.Minute},
	} {
		got, err := ParseLatency(text)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	const form = "must be BASE+PER_TOKEN, like 400ms+15ms"
	for text, want := range map[string]string{
		"": form, "+": form, "400": form, "400ms+": form, "+15ms": form, "400ms++15ms": form,
		"1ms+1ms+1ms": form, "400ms-15ms": form, "1ms + 1ms": form, "9999999999h": form,
		"-1ms": "-1ms must not be negative", "1ms+-2ms": "-2ms must not be negative",
		"1h":          "must be less than an hour: a lease lives no longer",
		"59m59.9991s": "must be less than an hour: a lease lives no longer",
	} {
		got, err := ParseLatency(text)
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, %v, want the error %q", text, got, err, want)
		}
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		latency string
		tokens  int64
		want    int64 // below 0 if the call is too long
	}{
		{"0", 1000, 0},
		{"0", math.MaxInt64, 0},
		{"400ms+15ms", 0, 400},
		{"400ms+15ms", 10, 550},
		{"1ns", 5, 1},
		{"0+1ns", 1_000_000, 1},
		{"0+1ns", 1_000_001, 2},
		{"1s+1ms", trace.MaxCallMS - 1000, trace.MaxCallMS},
		{"1s+1ms", trace.MaxCallMS - 999, -1},
		{"0+1ns", math.MaxInt64, -1},
		{"0+2562047h", 1, -1},
	} {
		l, err := ParseLatency(c.latency)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := l.ms(c.tokens)
		if ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("%s, %d tokens: got %d, %v, want %d", c.latency, c.tokens, got, ok, c.want)
		}
	}
}

// FuzzParseLatency checks that a latency that was read prints as text of the same meaning, that no
// call lasts longer than the bound, and that more tokens never make a call shorter.
func FuzzParseLatency(f *testing.F) {
	for _, s := range []string{"400ms+15ms", "0", "1h", "-1s", "1s+", "1us+1ns", "59m59s+2562047h"} {
		f.Add(s, int64(100))
	}
	f.Add("1ns+1ns", int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, s string, tokens int64) {
		l, err := ParseLatency(s)
		if err != nil {
			return
		}
		if again, err := ParseLatency(l.String()); err != nil || again != l {
			t.Errorf("%q: got %v, %v from %s, want the same", s, again, err, l.String())
		}
		tokens = max(tokens, 0)
		ms, ok := l.ms(tokens)
		if ok && (ms < 0 || ms > trace.MaxCallMS) {
			t.Errorf("%q, %d tokens: got %d ms", s, tokens, ms)
		}
		if less, okLess := l.ms(tokens / 2); ok && (!okLess || less > ms) {
			t.Errorf("%q: got %d ms, %v for %d tokens and %d for %d", s, less, okLess, tokens/2, ms, tokens)
		}
	})
}
