package leaseid_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/leaseid"
)

var start = time.UnixMilli(1_800_000_000_000)

// split returns the first ID of the row of an ID, and its number in the row.
func split(id weir.LeaseID) (row weir.LeaseID, number int) {
	number = int(id[15] & 7)
	id[15] &^= 7
	return id, number
}

func TestRows(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, test := range []struct {
		name  string
		after []time.Duration // the time of each ID, after start
		want  string          // the row of each ID and its number in the row
	}{
		{"a row and the next", make([]time.Duration, 10), "a0 a1 a2 a3 a4 a5 a6 a7 b0 b1"},
		{"within ten milliseconds", []time.Duration{0, 5 * ms, 10 * ms, 10*ms + 999_999, 0, -10 * ms}, "a0 a1 a2 a3 a4 a5"},
		{"later", []time.Duration{0, 11 * ms, 12 * ms, 21 * ms, 22 * ms}, "a0 b0 b1 b2 c0"},
		{"earlier", []time.Duration{0, -11 * ms, -12 * ms, -21 * ms, -22 * ms}, "a0 b0 b1 b2 c0"},
		{"an hour later and back", []time.Duration{0, time.Hour, 0, time.Hour}, "a0 b0 c0 d0"},
		{"a time without a row before", []time.Duration{-start.Sub(time.UnixMilli(1))}, "a0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var rows leaseid.Rows
			names := map[weir.LeaseID]string{}
			var got strings.Builder
			for _, after := range test.after {
				row, number := split(rows.Next(start.Add(after)))
				if names[row] == "" {
					names[row] = string(rune('a' + len(names)))
					if want := start.Add(after).UnixMilli(); row.UnixMilli() != want {
						t.Errorf("row %s has the time %d, want %d", names[row], row.UnixMilli(), want)
					}
				}
				fmt.Fprintf(&got, " %s%d", names[row], number)
			}
			if got.String() != " "+test.want {
				t.Errorf("got %s, want %s", got.String(), test.want)
			}
		})
	}
}

// checkRows makes an ID after each step of the clock, in milliseconds, and compares each with the
// rule: it continues the row if the row has a free ID and its time is near, and otherwise it begins
// a row that was never seen.
func checkRows(t *testing.T, ms int64, steps []int8) {
	t.Helper()
	var rows leaseid.Rows
	var row weir.LeaseID
	seen := map[weir.LeaseID]bool{}
	used := 0
	for i, step := range steps {
		ms += int64(step)
		apart := max(ms-row.UnixMilli(), row.UnixMilli()-ms)
		continues := i > 0 && used < leaseid.RowSize && apart <= 10
		got, number := split(rows.Next(time.UnixMilli(ms)))
		switch {
		case continues && (got != row || number != used):
			t.Fatalf("ID %d: got %d of row %v, want %d of %v", i, number, got, used, row)
		case !continues && (seen[got] || number != 0 || got.UnixMilli() != ms):
			t.Fatalf("ID %d: got %d of row %v at %d, want the first of a new row", i, number, got, ms)
		case !continues:
			row, used, seen[got] = got, 0, true
		}
		used++
	}
}

func TestRowsFollowTheRule(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		steps := make([]int8, 1_000)
		most := 1 + rng.IntN(20)
		for i := range steps {
			steps[i] = int8(rng.IntN(2*most+1) - most)
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			checkRows(t, start.UnixMilli(), steps)
		})
	}
}

func FuzzRows(f *testing.F) {
	f.Add(uint64(start.UnixMilli()), make([]byte, 20))
	f.Add(uint64(5), []byte{0, 5, 6, 11, 0x80, 0x7f, 0xf5, 0xf6})
	f.Add(uint64(1)<<48-1, []byte{0, 0xff, 0xf6, 0xf5})
	f.Fuzz(func(t *testing.T, ms uint64, moves []byte) {
		at := int64(ms & (1<<48 - 1)) // what an ID can hold
		steps := make([]int8, 0, len(moves))
		for now, i := at, 0; i < len(moves); i++ {
			if now += int64(int8(moves[i])); now < 0 || now >= 1<<48 {
				break
			}
			steps = append(steps, int8(moves[i]))
		}
		checkRows(t, at, steps)
	})
}

// TestConcurrentRows makes 10,250 IDs in 64 goroutines, 1,025 at each of ten instants. Each instant
// must have 128 complete rows, and one row that the next instant cuts after its first ID.
func TestConcurrentRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const goroutines, instants, each = 64, 10, 16
		var rows leaseid.Rows
		var all sync.WaitGroup
		made := make([][]weir.LeaseID, goroutines)
		for g := range goroutines {
			all.Go(func() {
				for range instants {
					for range each {
						made[g] = append(made[g], rows.Next(time.Now()))
					}
					if g == 0 {
						made[g] = append(made[g], rows.Next(time.Now()))
					}
					time.Sleep(11 * time.Millisecond)
				}
			})
		}
		all.Wait()
		found := map[weir.LeaseID]byte{} // by row, a bit for each ID
		for _, ids := range made {
			for _, id := range ids {
				row, number := split(id)
				if found[row]&(1<<number) != 0 {
					t.Fatalf("%v was made twice", id)
				}
				found[row] |= 1 << number
			}
		}
		complete, cut := map[int64]int{}, map[int64]int{}
		for row, numbers := range found {
			switch numbers {
			case 0xff:
				complete[row.UnixMilli()]++
			case 1:
				cut[row.UnixMilli()]++
			default:
				t.Errorf("row %v has the IDs %08b", row, numbers)
			}
		}
		if len(complete) != instants || len(cut) != instants {
			t.Errorf("got rows of %d and %d instants, want %d", len(complete), len(cut), instants)
		}
		for ms := range complete {
			if complete[ms] != goroutines*each/leaseid.RowSize || cut[ms] != 1 {
				t.Errorf("at %d: got %d complete rows and %d cut, want 128 and 1", ms, complete[ms], cut[ms])
			}
		}
	})
}

// TestRowsCannotBeGuessed checks that all bits of a row but the time and the last three are random:
// each is set in some rows and clear in others, also in rows of one instant and of several callers.
func TestRowsCannotBeGuessed(t *testing.T) {
	t.Parallel()
	callers := make([]leaseid.Rows, 200)
	seen := map[weir.LeaseID]bool{}
	var set, clear weir.LeaseID
	for i := range callers {
		row, _ := split(callers[i].Next(start))
		if seen[row] {
			t.Errorf("two callers have the row %v", row)
		}
		seen[row] = true
		for j := range row {
			set[j] |= row[j]
			clear[j] |= ^row[j]
		}
	}
	const want = uint64(0xffff_ffff_ffff_fff8)
	if got := binary.BigEndian.Uint64(set[8:]) & binary.BigEndian.Uint64(clear[8:]); got != want {
		t.Errorf("the bits %016x of the last eight bytes differ, want %016x", got, want)
	}
	if set[6]&clear[6]&set[7]&clear[7] != 0xff {
		t.Error("some of the first 16 bits after the time are always equal")
	}
}

func BenchmarkNext(b *testing.B) {
	b.Run("rows", func(b *testing.B) {
		var rows leaseid.Rows
		for b.Loop() {
			rows.Next(start)
		}
	})
	b.Run("rows, 64 goroutines", func(b *testing.B) {
		var rows leaseid.Rows
		b.SetParallelism(32) // times GOMAXPROCS, which is at least 2 on the machine of docs/performance.md
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				rows.Next(start)
			}
		})
	})
	b.Run("random", func(b *testing.B) {
		for b.Loop() {
			weir.NewLeaseID(start)
		}
	})
}
