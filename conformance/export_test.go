package conformance

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir/conformance/model"
)

// Generate returns a script of the n operations that a seed generates, after they were played.
func Generate(t T, h *Harness, seed uint64, n int) *Script {
	t.Helper()
	r := scriptSearch{t: t, h: h, calendar: model.NewCalendar(), ops: n}
	if d := r.example(seed); d != nil {
		t.Errorf("seed %d: %v", seed, d)
	}
	return r.machine.script
}

// Fuzzer returns a fuzz target that plays the operations that rapid draws from its input.
func Fuzzer(h *Harness) func(*testing.T, []byte) {
	return rapid.MakeFuzz(func(t *rapid.T) {
		r := scriptSearch{t: t, h: h, calendar: model.NewCalendar(), ops: longScriptOps}
		if d := r.play(t); d != nil {
			t.Errorf("%v\n%s", d, r.machine.script)
		}
	})
}
