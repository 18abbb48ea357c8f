package conformance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/model"
)

func TestTable(t *testing.T) {
	t.Parallel()
	h := conformance.ModelHarness(nil)
	const ops = 300
	table := conformance.RandomOperations(t, h, 1, ops)
	if got := table.Ops(); got != ops {
		t.Errorf("the table counts %d operations, want %d", got, ops)
	}
	admitted := table.Cells[model.Note{Verb: "reserve", Outcome: "admitted"}]
	if admitted == 0 || !strings.Contains(table.String(), "reserve   admitted\n") {
		t.Errorf("%d reservations were admitted:\n%s", admitted, table)
	}
	const rare = "reserve: admitted: "
	begins := func(line string) bool { return strings.HasPrefix(line, rare) }
	if slices.ContainsFunc(table.Rare(&h, admitted), begins) {
		t.Errorf("%d admitted are said to be less than %d", admitted, admitted)
	}
	if !slices.ContainsFunc(table.Rare(&h, admitted+1), begins) {
		t.Errorf("%d admitted are not said to be less than %d", admitted, admitted+1)
	}
}
