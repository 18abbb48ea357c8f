package joined_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-limiter/weir/internal/joined"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	wrapped := fmt.Errorf("around: %w", errors.Join(a, b))
	for _, test := range []struct {
		err  error
		want []error
	}{
		{nil, nil},
		{a, []error{a}},
		{wrapped, []error{wrapped}}, // taking it apart would lose its text
		{errors.Join(a, nil, b), []error{a, b}},
		{errors.Join(errors.Join(a, b), wrapped, errors.Join(c)), []error{a, b, wrapped, c}},
	} {
		if got := joined.Errors(test.err); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %q, want %q", test.err, got, test.want)
		}
	}
}
