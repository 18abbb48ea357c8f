package dynamodb

import (
	"slices"
	"testing"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// TestUnjudged lists the attributes by which weir does not judge, on items as the Python library 0.17
// writes them. That an item is disabled is not among them.
func TestUnjudged(t *testing.T) {
	t.Parallel()
	s := configured(t)
	ns := s.config.Namespace
	s.mustEntity(t, "acme", "", false)
	clean := s.bucket(t, "acme", "gpt-4o", 0, 1)
	if found, err := s.Table().Unjudged(t.Context()); err != nil || len(found) != 0 {
		t.Fatalf("a plain table: got %+v, %v, want nothing", found, err)
	}
	s.also(t, clean.Key(), schema.Item{schema.AttrDisabled: schema.Bool(true)})
	if found, err := s.Table().Unjudged(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("a disabled bucket: got %+v, %v, want nothing", found, err)
	}

	odd := s.bucket(t, "acme", "o1", 0, 1)
	s.also(t, odd.Key(), schema.Item{
		"bypass": schema.Number(1), "b_rpm_ws": schema.Number(1), "sched": schema.String("x"),
	})
	level := schema.ResourceConfigKey(ns, "o1")
	s.put(t, schema.Item{
		schema.AttrPK: schema.String(level.PK), schema.AttrSK: schema.String(level.SK),
		"resource": schema.String("o1"), "config_version": schema.Number(1),
		"l_rpm_cp": schema.Number(5), "l_rpm_ra": schema.Number(5), "l_rpm_rp": schema.Number(60),
		"l_rpm_soft": schema.Bool(true), "w_day_cp": schema.Number(5),
	})
	found, err := s.Table().Unjudged(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := func(key schema.Key, attribute string) string { return key.PK + " " + key.SK + " " + attribute }
	want := []string{
		at(odd.Key(), "b_rpm_ws"), at(odd.Key(), "bypass"), at(odd.Key(), "sched"),
		at(level, "l_rpm_soft"), at(level, "w_day_cp"),
	}
	if !slices.Equal(found, want) {
		t.Errorf("got %q, want %q", found, want)
	}
}

// TestFunctionVersion names the library's function in the version record, and takes it out again.
func TestFunctionVersion(t *testing.T) {
	t.Parallel()
	s := configured(t)
	table, err := s.Table().connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"0.17.0", "", "0.16.1"} {
		if err := table.SetFunction(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		item := s.item(t, schema.VersionKey())
		if got := client.TextOf(item, schema.AttrLambdaVersion); got != version ||
			item[schema.AttrLambdaVersion] == nil {
			t.Errorf("lambda_version is %v, want %q, or null if it is empty", item, version)
		}
	}
}
