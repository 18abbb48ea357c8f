package chart

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestScaleIsExact(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		top := random.Uint64() >> random.IntN(64)
		v := random.Uint64() >> random.IntN(64)
		length := random.IntN(5000)
		got := scale(v, top, length)
		want := int64(0)
		switch {
		case top == 0:
		case v >= top:
			want = int64(length)
		default: // v·length/top, rounded to the nearest
			n := new(big.Int).Mul(new(big.Int).SetUint64(v), big.NewInt(int64(length)))
			n.Add(n, new(big.Int).SetUint64(top/2))
			want = n.Quo(n, new(big.Int).SetUint64(top)).Int64()
		}
		if int64(got) != want {
			t.Fatalf("%d of %d on %d: got %d, want %d", v, top, length, got, want)
		}
	}
}

func TestNiceTop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ largest, want uint64 }{
		{0, 1}, {1, 1}, {2, 2}, {3, 4}, {5, 6}, {7, 8}, {8, 8}, {9, 10}, {10, 10}, {11, 12}, {17, 20},
		{90, 100}, {101, 120}, {190, 200}, {233, 240}, {240_000, 240_000}, {13_000_001, 16_000_000},
		{math.MaxInt64, 10_000_000_000_000_000_000}, {math.MaxUint64, math.MaxUint64},
	} {
		if got := niceTop(c.largest); got != c.want {
			t.Errorf("%d: got %d, want %d", c.largest, got, c.want)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		v := random.Uint64() >> (1 + random.IntN(62))
		top := niceTop(v)
		if top < v || v > 8 && (top%2 != 0 || top/2 > v) {
			t.Fatalf("%d: %d is no scale that shows it and has a half", v, top)
		}
	}
}

func TestRoundTop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		largest   uint64
		unit      string
		top, half string
	}{
		{61, "calls", "80", "40"}, {700, Milliseconds, "800 ms", "400 ms"},
		{7_001, Milliseconds, "8 s", "4 s"}, {9_000, Milliseconds, "10 s", "5 s"},
		{61_000, Milliseconds, "2 min", "1 min"}, {5_000_000, Milliseconds, "2 h", "1 h"},
		{86_400_001, Milliseconds, "2 d", "1 d"}, {99_999_999_999, Milliseconds, "1.2k d", "600 d"},
		{math.MaxInt64, Milliseconds, "120G d", "60G d"}, {math.MaxUint64, Milliseconds, "213G d", "106G d"},
	} {
		top := roundTop(c.largest, c.unit)
		if got := short(top, c.unit); got != c.top || short(top/2, c.unit) != c.half || top < c.largest {
			t.Errorf("%d %s: got %q and %q", c.largest, c.unit, got, short(top/2, c.unit))
		}
	}
}

func TestSumsSaturate(t *testing.T) {
	t.Parallel()
	if got := sum([]uint64{1, 2, 3}); got != 6 {
		t.Errorf("got %d", got)
	}
	if got := sum([]uint64{math.MaxUint64, 1, 5}); got != math.MaxUint64 {
		t.Errorf("got %d", got)
	}
	if got := plus(math.MaxInt64-1, 1); got != math.MaxInt64 {
		t.Errorf("got %d", got)
	}
	if got := plus(math.MaxInt64, math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("got %d", got)
	}
}

func TestNumbersInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{plain(0, ""), "0"}, {plain(-1, ""), "-1"}, {plain(999, ""), "999"},
		{plain(1000, ""), "1,000"}, {plain(-123_456, ""), "-123,456"},
		{plain(math.MinInt64, ""), "-9,223,372,036,854,775,808"},
		{compact(0), "0"}, {compact(999), "999"}, {compact(1000), "1k"}, {compact(1200), "1.2k"},
		{compact(1250), "1.25k"}, {compact(12_500), "12.5k"}, {compact(240_000), "240k"},
		{compact(14_000_000), "14M"}, {compact(math.MaxUint64), "18.4E"},
		{duration(0), "0 ms"}, {duration(999), "999 ms"}, {duration(1000), "1 s"},
		{duration(12_499), "12.4 s"}, {duration(60_000), "1 min"}, {duration(200_000), "3 min 20 s"},
		{duration(7_260_000), "2 h 1 min"}, {duration(90_000_000), "1 d 1 h"},
		{duration(-1500), "-1.5 s"}, {duration(math.MinInt64), "-106,751,991,167 d 7 h"},
		{exact(1200, "calls"), "1,200 calls"}, {exact(1200, ""), "1,200"},
		{exact(1200, Milliseconds), "1.2 s"}, {plain(1200, "calls"), "1,200"},
		{short(1200, "calls"), "1.2k"}, {short(1200, Milliseconds), "1.2 s"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		most  int
		ascii bool
		want  string
	}{
		{"tenant-1", 8, false, "tenant-1"}, {"tenant-1", 7, false, "tenant…"},
		{"tenant-1", 7, true, "tenant~"}, {"漢字漢字", 6, false, "漢字…"}, {"ab", 1, false, "…"},
	} {
		if got := shorten(c.text, c.most, c.ascii); got != c.want {
			t.Errorf("%q to %d: got %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, ascii string }{
		{"tenant-1 ü", "tenant-1 ü", `tenant-1 \u00fc`},
		{"\x1b[2J", `\x1b[2J`, `\x1b[2J`},
		{"a\nb", `a\nb`, `a\nb`},
		{"\u202eevil", `\u202eevil`, `\u202eevil`},
		{"\xff", `\xff`, `\xff`},
	} {
		if got := printable(c.text, false); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
		if got := printable(c.text, true); got != c.ascii {
			t.Errorf("%q in ASCII: got %q, want %q", c.text, got, c.ascii)
		}
	}
}
