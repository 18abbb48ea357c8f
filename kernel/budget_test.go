package kernel_test

import "testing"

func TestBudgetStartsAgainWithThePeriod(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		every, zone string
		end         int64 // of the period that contains the start
	}{
		{"hour", "", 3_600_000},
		{"day", "", day},
		{"week", "", 7 * day},
		{"month", "", 30 * day},
		{"day", "Europe/Berlin", day - 2*3_600_000}, // midnight in Berlin is 22:00 in UTC
	} {
		t.Run(tc.every+tc.zone, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, budget(10, tc.every, tc.zone))
			w.at(0).take(7)
			w.refuse(4, tc.end)
			w.at(tc.end-1).refuse(4, 1)
			w.take(3)
			w.at(tc.end).left(10)
			w.take(10)
		})
	}
}

func TestBudgetSettlesIntoThePeriodOfTheReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget(10, "day", ""))
	l := w.at(0).take(4)
	w.adjust(l, 13)
	w.left(-3)
	w.refuse(0, day)
	w.adjust(l, 6)
	w.left(4)
	late := w.take(1)
	w.at(day).take(2)
	w.complete(l, 1000)
	w.cancel(late)
	w.left(8)
}

func TestUnusedBudgetHasAPeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget(10, "day", ""))
	early, late := w.at(0).take(0), w.at(0).take(0)
	w.at(day-1).complete(early, 4)
	w.left(6)
	w.at(day).complete(late, 4)
	w.left(10)
}

func TestBudgetChangedCalendarKeepsWhatIsInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget(10, "day", ""))
	l := w.at(0).take(6)
	w.configure(budget(10, "hour", ""))
	w.left(4)
	w.take(3)
	w.refuse(4, 3_600_000)
	w.refuse(9, day)
	w.at(3_600_000).left(4)
	w.complete(l, 2)
	w.left(8)
	w.at(day).left(10)
}

func TestBudgetClockBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget(10, "day", ""))
	w.at(day).take(4)
	w.at(0).take(4) // counts on the second day
	w.refuse(3, 2*day)
	w.at(day).left(2)
}
