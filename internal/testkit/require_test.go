package testkit

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// verdict is a testing.TB that only records how the test was ended.
type verdict struct {
	testing.TB // nil, so that any other method panics

	ctx             context.Context
	skipped, failed string
}

func (v *verdict) Context() context.Context { return v.ctx }

func (v *verdict) Helper() {}

func (v *verdict) Skipf(format string, args ...any) {
	v.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// The variable decides whether the test is skipped or fails.
func TestRequire(t *testing.T) {
	for _, c := range []struct {
		name, require, tool string
		fails               bool
	}{
		{"nothing is required", "", "python", false},
		{"another one is", "dynamodb,pythons", "python", false},
		{"this one is", "python", "python", true},
		{"this one among others", "dynamodb, python ,curl", "python", true},
		{"an empty name is no tool", ",", "python", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(requireVariable, c.require)
			var v verdict
			done := make(chan struct{})
			survived := false
			go func() {
				defer close(done)
				Require(&v, c.tool, "there is none")
				survived = true
			}()
			<-done
			if survived {
				t.Error("the test goes on without its tool")
			}
			got, other := v.skipped, v.failed
			if c.fails {
				got, other = other, got
			}
			if !strings.Contains(got, "python is missing") || !strings.Contains(got, "there is none") {
				t.Errorf("got %q, want the tool and the reason", got)
			}
			if other != "" {
				t.Errorf("got the wrong end: %q", other)
			}
		})
	}
}
