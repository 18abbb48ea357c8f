package estimator_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/weir-limiter/weir/estimator"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		o     *estimator.Options
		wrong []string // fields, in order
	}{
		{"none", nil, nil},
		{"empty", &estimator.Options{}, nil},
		{"the smallest", &estimator.Options{Share: 1, First: 1, Window: 1, Keys: 1, Models: 1}, nil},
		{"as many as the share needs", &estimator.Options{Share: 950_000, Window: 19}, nil},
		{"one less", &estimator.Options{Share: 950_000, Window: 18}, []string{"Window"}},
		{"the longest window", &estimator.Options{Window: 65_535}, nil},
		{"longer", &estimator.Options{Window: 65_536}, []string{"Window"}},
		{"the largest share", &estimator.Options{Share: 999_984}, nil},
		{"one that no window holds", &estimator.Options{Share: 999_985}, []string{"Share"}},
		{"the whole", &estimator.Options{Share: 1_000_000}, []string{"Share"}},
		{
			"all at once",
			&estimator.Options{Share: -1, First: math.MinInt64, Window: -1, Keys: -1, Models: -1},
			[]string{"Share", "First", "Window", "Keys", "Models"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e, err := estimator.New(test.o)
			if (e == nil) != (err != nil) || (err != nil) != (test.wrong != nil) {
				t.Fatalf("got %v and %v", e, err)
			}
			var got []string
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				for _, each := range joined.Unwrap() {
					mistake, _ := errors.AsType[*estimator.OptionError](each)
					got = append(got, mistake.Field)
				}
			}
			if !slices.Equal(got, test.wrong) {
				t.Errorf("got %v, want %v wrong: %v", got, test.wrong, err)
			}
		})
	}
	_, err := estimator.New(&estimator.Options{Window: 7})
	const want = "estimator: Window 7: must be at least 19 for a share of 950000"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestDefaultWindow checks the number of calls that an estimate is based on after many calls.
func TestDefaultWindow(t *testing.T) {
	t.Parallel()
	for share, want := range map[int64]int64{900_000: 256, 0: 256, 990_000: 990, 999_900: 65_535} {
		e := open(t, &estimator.Options{Share: share})
		for range 70_000 {
			e.Learn(estimator.Key{}, 0, 5)
		}
		if got := e.Estimate(estimator.Key{}); got.Seen != want || got.Tokens != 5 {
			t.Errorf("share %d: got %+v, want it to rest on %d", share, got, want)
		}
	}
}
