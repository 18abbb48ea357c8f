package kernel_test

import "testing"

func TestWindowReturnsEachUnitAtItsInstant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, window(10, minute))
	w.at(0).take(4)
	w.at(10_000).take(6)
	w.at(10_000).refuse(1, 50_000)
	w.at(10_000).refuse(5, 60_000) // only 4 are left
	w.at(59_999).refuse(4, 1)
	w.at(60_000).take(4)
	w.at(60_000).refuse(1, 10_000)
	w.at(70_000).left(6)
	w.at(120_000).left(10)
}

func TestWindowSettles(t *testing.T) {
	t.Parallel()
	t.Run("a shrink keeps the end of what stays", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(10, minute))
		l := w.at(0).take(10)
		w.at(20_000).adjust(l, 3)
		w.left(7)
		w.at(20_000).take(7)
		w.at(59_999).refuse(3, 1)
		w.at(60_000).take(3)
		w.at(60_000).refuse(1, 20_000)
	})
	t.Run("last in, first out", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(20, minute))
		l := w.at(0).take(5)
		w.at(70_000).adjust(l, 9)
		w.at(80_000).adjust(l, 12)
		w.at(90_000).adjust(l, 7) // 3 return at 80,000 and 2 at 70,000
		w.left(18)
		w.at(129_999).left(18)
		w.at(130_000).left(20)
	})
	t.Run("what has returned does not return again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(10, minute))
		l := w.at(0).take(6)
		w.at(60_000).adjust(l, 8)
		w.take(8)
		w.left(0)
		w.adjust(l, 7) // one of the two is freed
		w.left(1)
		w.adjust(l, 1) // the other too; five of the six have returned already
		w.left(2)
		w.cancel(l)
		w.left(2)
	})
	t.Run("grows again after all has returned", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(10, minute))
		l := w.at(0).take(6)
		w.at(60_000).adjust(l, 7)
		w.left(9)
		w.at(120_000).left(10)
	})
}

func TestWindowGrows(t *testing.T) {
	t.Parallel()
	t.Run("grown units return with the first", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(10, minute))
		l := w.at(0).take(8)
		w.at(30_000).complete(l, 15)
		w.left(-5)
		w.at(30_000).refuse(0, 30_000)
		w.at(59_999).refuse(4, 1)
		w.at(60_000).left(10)
	})
	t.Run("also where nothing was reserved first", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(10, minute))
		l := w.at(0).take(0)
		w.at(10_000).adjust(l, 3)
		w.at(20_000).adjust(l, 0)
		w.at(30_000).adjust(l, 9)
		w.at(59_999).refuse(2, 1)
		w.at(60_000).left(10)
	})
	t.Run("reported after the others returned, they count from then on", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(10, minute))
		l := w.at(0).take(8)
		w.at(60_000).adjust(l, 12)
		w.left(6)
		w.at(90_000).adjust(l, 14)
		w.left(4)
		w.at(119_999).refuse(5, 1)
		w.at(120_000).left(8)
		w.at(149_999).refuse(9, 1)
		w.at(150_000).left(10)
	})
}

func TestWindowManyAdjustsLeaveFewPieces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, window(1_000_000, second))
	l := w.at(0).take(1)
	for i := range int64(1000) {
		w.at(i*100).adjust(l, i+2)
		if n := len(l.pieces); n > 12 {
			t.Fatalf("after %d adjusts: %d pieces, want one for each 100 ms of a second", i, n)
		}
	}
	w.cancel(l)
	w.left(1_000_000)
}

func TestWindowSameInstantIsOnePiece(t *testing.T) {
	t.Parallel()
	w := newWorld(t, window(10, minute))
	l := w.at(0).take(1)
	w.adjust(l, 3)
	w.adjust(l, 6)
	if got := l.pieces; len(got) != 1 || got[0].Units != 6 {
		t.Errorf("pieces: got %+v, want one of 6", got)
	}
	w.adjust(l, 0)
	if got := l.pieces; len(got) != 1 || got[0].Units != 0 {
		t.Errorf("pieces: got %+v, want one that only has its end", got)
	}
	w.left(10)
}

func TestConcurrencyHoldsUntilSettledOrTimedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concurrency(3, minute))
	l := w.at(0).take(2)
	w.at(5_000).take(1)
	w.at(5_000).refuse(1, 55_000)
	w.at(5_000).refuse(3, 60_000)
	w.at(6_000).complete(l, 2) // complete returns the slots, whatever the actuals name
	w.left(2)
	w.take(2)
	w.at(64_999).refuse(1, 1)
	w.at(65_000).take(1)
}

func TestConcurrencyExtend(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concurrency(2, minute))
	l := w.at(0).take(2)
	w.at(50_000).extend(l)
	w.at(60_000).refuse(1, 50_000)
	w.at(109_999).refuse(1, 1)
	w.at(110_000).take(1)
	w.at(110_000).extend(l) // both have timed out and stay returned
	w.left(1)
	w.at(110_000).cancel(l)
	w.left(1)
}

func TestConcurrencyZeroSlots(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concurrency(1, minute))
	l := w.at(0).take(0)
	if got := l.pieces; len(got) != 0 {
		t.Errorf("pieces: got %+v, want none", got)
	}
	w.take(1)
	w.take(0) // a full limit is not exceeded
	w.extend(l)
	w.complete(l, 0)
	w.left(0)
}

func TestOccupancyChanged(t *testing.T) {
	t.Parallel()
	t.Run("taken units keep their ends", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, window(10, minute))
		w.at(0).take(3)
		w.at(1_000).configure(window(10, 10*second))
		w.at(2_000).take(3)
		w.at(3_000).configure(window(10, 2*minute))
		w.at(4_000).take(4)
		w.refuse(3, 8_000)   // at 12,000
		w.refuse(6, 56_000)  // at 60,000
		w.refuse(7, 120_000) // at 124,000
		w.at(12_000).left(3)
		w.at(60_000).left(6)
		w.at(124_000).left(10)
	})
	t.Run("a lowered capacity leaves it over", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, concurrency(10, minute))
		l := w.at(0).take(8)
		w.configure(concurrency(5, minute))
		w.left(-3)
		w.refuse(0, 60_000)
		w.cancel(l)
		w.left(5)
	})
	t.Run("an extend takes the timeout in force", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, concurrency(10, minute))
		l := w.at(0).take(8)
		w.configure(concurrency(10, 10*second))
		w.at(1_000).extend(l)
		w.at(10_999).left(2)
		w.at(11_000).left(10)
	})
}

func TestOccupancyClockBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, window(10, minute))
	w.at(60_000).take(5)
	w.at(30_000).take(5) // counts at 60,000
	w.at(30_000).refuse(1, 90_000)
	w.at(119_999).refuse(10, 1)
	w.at(120_000).left(10)
}
