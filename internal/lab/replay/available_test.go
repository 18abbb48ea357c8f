package replay

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/soak"
)

func TestAvailable(t *testing.T) {
	t.Parallel()
	from := time.Date(2023, 11, 16, 18, 17, 0, 0, time.UTC).UnixMilli()
	for _, c := range []struct {
		name  string
		limit weir.Limit
		ms    int64
		want  string
	}{
		{"bucket", weir.Limit{Capacity: 100, RefillAmount: 60}, 90_500, "190"},
		{"bucket, at one instant", weir.Limit{Capacity: 100}, 0, "100"},
		{"bucket, large", weir.Limit{
			Capacity: math.MaxInt64 / 1000, RefillPeriod: time.Millisecond,
		}, 1_000_000_000_000, "9223372036863998372036854775"},
		{"window", weir.Limit{Kind: weir.Window, Capacity: 10, Window: time.Minute}, 90_000, "20"},
		{"window, at its end", weir.Limit{Kind: weir.Window, Capacity: 10, Window: time.Minute}, 60_000, "20"},
		{"window, just before", weir.Limit{Kind: weir.Window, Capacity: 10, Window: time.Minute}, 59_999, "10"},
		{"window, longer", weir.Limit{Kind: weir.Window, Capacity: 10, Window: time.Hour}, 90_000, "10"},
		{"slots", weir.Limit{Kind: weir.Concurrency, Capacity: 3, Timeout: time.Minute}, 1001, "3003"},
		{"hours", weir.Limit{Kind: weir.Budget, Capacity: 7, Every: "hour"}, 43 * 60_000, "14"},
		{"one hour", weir.Limit{Kind: weir.Budget, Capacity: 7, Every: "hour"}, 43*60_000 - 1, "7"},
		{"a day elsewhere", weir.Limit{
			Kind: weir.Budget, Capacity: 7, Every: "day", Zone: "Asia/Kolkata",
		}, 43 * 60_000, "14"},
		{"a month", weir.Limit{Kind: weir.Budget, Capacity: 7, Every: "month"}, 43 * 60_000, "7"},
	} {
		c.limit.Name = "x"
		l, err := c.limit.Normalize()
		if err != nil {
			t.Fatal(err)
		}
		if got := newReplayRange(timeRange{from, from + c.ms}).available(&l).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPeriodsOneByOne checks that the number of periods is the same as if they were counted one
// after the other, even if clocks change at midnight, by half an hour, by a day, or at a minute
// past.
func TestPeriodsOneByOne(t *testing.T) {
	t.Parallel()
	const dayMS = 24 * 60 * 60 * 1000
	step := int64(soak.Amount(1597, 397)) // number of days
	for _, zone := range []string{
		"UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo",
		"Asia/Kathmandu", "Pacific/Kwajalein", "America/St_Johns", "Africa/Monrovia",
	} {
		for _, every := range []string{"hour", "day", "week", "month"} {
			l, err := (&weir.Limit{
				Name: "x", Kind: weir.Budget, Capacity: 1, Every: every, Zone: zone,
			}).Normalize()
			if err != nil {
				t.Fatal(err)
			}
			for from := int64(0); from < 60*365*dayMS; from += step*dayMS + 12_345_678 {
				s := timeRange{from, from + 410*dayMS}
				want := int64(0)
				for at, to := time.UnixMilli(s.fromMS), time.UnixMilli(s.toMS); !at.After(to); want++ {
					_, at = l.Period(at)
				}
				if got := s.periods(&l); got != want {
					t.Errorf("%s in %s from %d: got %d, want %d", every, zone, from, got, want)
				}
			}
		}
	}
}

// TestPeriodsOfLongTraces checks that the periods of the longest time that a trace can span are counted
// quickly.
func TestPeriodsOfLongTraces(t *testing.T) {
	t.Parallel()
	for zone, want := range map[string]int64{"UTC": 70_389_528, "Europe/Berlin": 70_389_528} {
		l, err := (&weir.Limit{
			Name: "x", Kind: weir.Budget, Capacity: 1, Every: "hour", Zone: zone,
		}).Normalize()
		if err != nil {
			t.Fatal(err)
		}
		if got := (timeRange{0, trace.MaxAtMS}).periods(&l); got != want {
			t.Errorf("%s: got %d, want %d", zone, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part, whole int64
		want        json.Number
	}{{0, 5, "0.0"}, {1, 3, "33.3"}, {2, 3, "66.6"}, {5, 5, "100.0"}, {7, 4, "175.0"}, {0, 0, ""}, {3, 0, ""}} {
		if got := percent(big.NewInt(c.part), big.NewInt(c.whole)); got != c.want {
			t.Errorf("%d of %d: got %q, want %q", c.part, c.whole, got, c.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(i) + 1
	}
	for _, c := range []struct {
		numbers []int64
		p       int64
		want    int64
	}{
		{nil, 50, 0}, {hundred[:1], 50, 1}, {hundred[:1], 95, 1}, {hundred[:2], 50, 1}, {hundred[:3], 50, 2},
		{hundred[:20], 95, 19}, {hundred[:21], 95, 20}, {hundred, 50, 50}, {hundred, 95, 95}, {hundred, 100, 100},
	} {
		var d distribution
		for _, n := range c.numbers {
			d.add(n)
		}
		if got := d.quantile(c.p); got != c.want {
			t.Errorf("%d numbers, %d %%: got %d, want %d", len(c.numbers), c.p, got, c.want)
		}
	}
}
