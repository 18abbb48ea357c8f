package manifest_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestLeftOutWarnings checks that a place whose limits hide limits of other names gets a warning at
// its position, that a limit of the system is reported only for the place that leaves it out first,
// and that limits with the same names are no reason for a warning.
func TestLeftOutWarnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"an entity on a resource": {
			`version: 1
resources:
  llm: {limits: {rpm: {capacity: 5}, tpm: {capacity: 5}}}
entities:
  acme: {resources: {llm: {limits: {rpm: {capacity: 50}}}}}
`, `limits.yaml:5:28: warning: entities.acme.resources.llm.limits "rpm": leaves out tpm of the resource: ` +
				`the limits here replace all weaker ones for acme on llm, so write it here too if it must apply`,
		},
		"two entities with the same names": {
			`version: 1
resources:
  llm: {limits: {rpm: {capacity: 5}, tpm: {capacity: 5}, usd_micros: {capacity: 100000}}}
entities:
  beta: {resources: {llm: {limits: {rpm: {capacity: 60}}}}}
  acme: {resources: {llm: {limits: {rpm: {capacity: 50}}}}}
`, `limits.yaml:6:28: warning: entities.acme.resources.llm.limits "rpm": leaves out tpm, usd_micros of the resource: ` +
				`the limits here replace all weaker ones for acme, beta on llm, so write them here too if they must apply`,
		},
		"a resource, and an entity on it": {
			`version: 1
system: {limits: {rpm: {capacity: 5}, day: {capacity: 5}}}
resources:
  llm: {limits: {rpm: {capacity: 5}}}
entities:
  acme: {resources: {llm: {limits: {rpm: {capacity: 50}}}}}
`, `limits.yaml:4:9: warning: resources.llm.limits "rpm": leaves out day of the system: ` +
				`the limits here replace all weaker ones on llm, so write it here too if it must apply`,
		},
		"an entity on every resource": {
			`version: 1
resources:
  a: {limits: {tpm: {capacity: 5}}}
  b: {limits: {tpm: {capacity: 5}}}
  c: {limits: {rpm: {capacity: 5}}}
entities:
  acme: {resources: {_default_: {limits: {rpm: {capacity: 50}}}}}
`, `limits.yaml:7:34: warning: entities.acme.resources._default_.limits "rpm": leaves out tpm of the resource: ` +
				`the limits here replace all weaker ones for acme on a, b, so write it here too if it must apply`,
		},
		"an entity's default": {
			`version: 1
system: {limits: {day: {capacity: 5}}}
entities:
  acme:
    resources:
      _default_: {limits: {day: {capacity: 5}, tpm: {capacity: 5}}}
      llm: {limits: {rpm: {capacity: 50}}}
`, `limits.yaml:7:13: warning: entities.acme.resources.llm.limits "rpm": leaves out day, tpm of the entity's _default_: ` +
				`the limits here replace all weaker ones for acme on llm, so write them here too if they must apply`,
		},
		"the same names": {
			`version: 1
resources: {llm: {limits: {rpm: {capacity: 5}}}}
entities: {acme: {resources: {llm: {limits: {rpm: {capacity: 5}, tpm: {capacity: 5}}}}}}
`, "",
		},
	} {
		var got []string
		for _, w := range parse(t, c.file).Warnings() {
			got = append(got, w.String())
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), c.want)
		}
	}
}

// TestLeftOutWarningsAreBounded checks that similar entities, and the resources on which an entity
// leaves out the same, get one warning of a bounded length.
func TestLeftOutWarningsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\nresources:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  r%02d: {limits: {rpm: {capacity: 1}}}\n", i)
	}
	b.WriteString("entities:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  e%03d: {resources: {_default_: {limits: {tpm: {capacity: 1}}}}}\n", i)
	}
	got := parse(t, b.String()).Warnings()
	const want = `leaves out rpm of the resource: the limits here replace all weaker ones for e000, e001, e002 and 997 more ` +
		`on r00, r01, r02, r03, r04, r05, r06, r07, r08, r09 and 90 more, so write it here too if it must apply`
	if len(got) != 1 || got[0].Reason != want || got[0].Line != 104 {
		t.Errorf("got %v, want one warning on line 104: %s", got, want)
	}
}
