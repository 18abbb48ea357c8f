package dynamodb

import (
	"slices"
	"testing"
)

// neverCases returns the mistakes that must never come back, and the rules of the writes that
// prevent them.
func neverCases() []neverCase {
	return slices.Concat(
		neverRefill(), neverShards(), neverCosts(), neverLimits(), neverSettle(), neverRules(), neverGeneral(),
		neverNewShards(), neverDrawn(), neverTold(), neverSplit(), neverReach(), writesCases(),
	)
}

// TestNever checks that mistakes of the predecessors and of the field do not come back.
func TestNever(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for _, c := range neverCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onNever(t, table, nil, c.play)
		})
	}
}
