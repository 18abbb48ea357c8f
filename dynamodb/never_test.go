package dynamodb

import (
	"slices"
	"testing"
)

// neverCases are what must never come back, and the rules of the writes that see to it.
func neverCases() []neverCase {
	return slices.Concat(
		neverRefill(), neverShards(), neverCosts(), neverLimits(), neverSettle(), neverRules(), neverGeneral(),
		neverNewShards(), neverDrawn(), neverTold(), neverSplit(), neverReach(), writesCases(),
	)
}

// TestNever: mistakes that the predecessors and others have made, none of which may come back.
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
