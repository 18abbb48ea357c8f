package livetest

import (
	"testing"

	"github.com/weir-limiter/weir/internal/soak"
)

// TestLive plays a moment of each scenario with one process of each side, all at once.
func TestLive(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios(20, 1, 45) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			play(t, s, 1, 3).judge(t)
		})
	}
}

// TestSoakLive plays each scenario for a minute with three processes of each side, and prints all
// figures (make test-long).
func TestSoakLive(t *testing.T) {
	soak.Only(t)
	for _, s := range scenarios(20, 3, 100) {
		t.Run(s.name, func(t *testing.T) {
			play(t, s, 3, 60).judge(t)
		})
	}
}
