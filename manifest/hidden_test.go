package manifest_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
)

func TestHidden(t *testing.T) {
	t.Parallel()
	d := parseFile(t, "testdata/hidden.yaml").Definitions
	found := manifest.Hidden(d)
	var got strings.Builder
	for i := range found {
		fmt.Fprintf(&got, "%v %s\n", found[i].Loses(), found[i].String())
	}
	want, err := os.ReadFile("testdata/hidden.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	bot := manifest.HiddenLimits{
		Entities: []string{"acme-bot"}, Resource: "gpt-4o", Level: weir.LevelEntity,
		Hidden: []manifest.HiddenLevel{
			{Level: weir.LevelResource, Overridden: []string{"rpm", "tpm"}, Lost: []string{"parallel"}},
			{Level: weir.LevelSystem, Overridden: []string{"rpm"}, Lost: []string{"sys"}},
		},
	}
	if !reflect.DeepEqual(found[2], bot) {
		t.Errorf("got %+v, want %+v", found[2], bot)
	}
}

func TestHiddenWithoutHiddenLimits(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"version: 1",
		"version: 1\nsystem: {limits: {rpm: {capacity: 1}}}\nentities: {a: {}}",
		"version: 1\nresources: {r: {limits: {rpm: {capacity: 1}}}}",
		"version: 1\nentities: {a: {resources: {r: {limits: {rpm: {capacity: 1}}}}}}",
	} {
		if got := manifest.Hidden(parse(t, text).Definitions); len(got) > 0 {
			t.Errorf("%s: got %s, want nothing hidden", text, got[0].String())
		}
	}
}

// TestHiddenIsBounded checks that similar entities are in one finding, and that the number of
// findings is bounded.
func TestHiddenIsBounded(t *testing.T) {
	t.Parallel()
	rpm := []weir.Limit{{Name: "rpm", Capacity: 1}}
	d := &weir.Definitions{
		System: rpm, Resources: map[string][]weir.Limit{"r": rpm}, Entities: map[string]weir.EntityDefinition{},
	}
	for i := range 5000 {
		d.Entities[fmt.Sprintf("tenant-%04d", i)] = weir.EntityDefinition{
			Limits: map[string][]weir.Limit{weir.DefaultResource: rpm},
		}
	}
	found := manifest.Hidden(normal(t, d))
	if len(found) != 3 || len(found[1].Entities) != 5000 || len(found[2].Entities) != 5000 {
		t.Fatalf("got %d findings, want one of the resource and two of all the tenants", len(found))
	}
	want := "tenant-0000, tenant-0001, tenant-0002 and 4997 more on r: " +
		"level entity_default hides resource (rpm overridden), system (rpm overridden)"
	if got := found[2].String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	many := map[string][]weir.Limit{}
	for i := range 10_001 {
		many[fmt.Sprintf("q%d", i)] = rpm
	}
	d.Entities["own"] = weir.EntityDefinition{Limits: many}
	if got := len(manifest.Hidden(normal(t, d))); got != 10_000 {
		t.Errorf("got %d findings, want 10000", got)
	}
}
