package conformance_test

import (
	"slices"
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// unlistedStore is a memory store that cannot list where something is in use.
type unlistedStore struct {
	driver.Store
	driver.ConfigReader
	driver.ConfigWriter
	driver.ConfigEditor
	driver.EntityReader
}

func unlistedHarness() conformance.StoreHarness {
	return conformance.StoreHarness{
		Open: func(t conformance.T, s conformance.Setup) driver.Store {
			t.Helper()
			m, err := memory.Open(&memory.Options{Definitions: s.Definitions})
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return &unlistedStore{m, m, m, m, m}
		},
	}
}

// TestServiceWithoutSubjectLister runs the whole suite on a store that is not a
// [driver.SubjectLister].
func TestServiceWithoutSubjectLister(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, unlistedHarness())
}

// TestCasesWithoutSubjectLister checks that on a store that is not a [driver.SubjectLister] only
// the cases that list what is in use are left out.
func TestCasesWithoutSubjectLister(t *testing.T) {
	t.Parallel()
	h := unlistedHarness()
	service := h.Service(t)
	var got []string
	want := []string{
		"8.3 P1: leftovers of everything removed, in a list",
		"9.4 a status leaves out a parent that is not charged",
		"9.4 a status without a resource is on each that the entity or its parent uses",
		"seam what has had a status alone is not listed",
		"9.3 a resource's users are listed",
	}
	for _, c := range slices.Concat(conformance.Cases(), h.Cases()) {
		if reason := c.LeftOut(&service); reason != "" {
			got = append(got, c.Title())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("left out are %q, want %q", got, want)
	}
}
