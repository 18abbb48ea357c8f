package dynamodb

import (
	"slices"
	"testing"
)

// mistakeCases returns the mistakes that must never come back, and the rules of the writes that
// prevent them.
func mistakeCases() []mistakeCase {
	return slices.Concat(
		refillCases(), shardCases(), costCases(), limitCases(), settleCases(), writeRuleCases(), generalCases(),
		newShardCases(), severalShardCases(), shardDenialCases(), splitCases(), reachCases(), writesCases(),
	)
}

// TestMistakesDoNotComeBack checks that mistakes of the predecessors and of the field do not come
// back.
func TestMistakesDoNotComeBack(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for _, c := range mistakeCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inTableWorld(t, table, nil, c.play)
		})
	}
}
