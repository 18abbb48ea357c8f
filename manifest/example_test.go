package manifest_test

import (
	"fmt"
	"log"

	"github.com/weir-limiter/weir/manifest"
)

// A limits file, and a mistake in one. Its definitions are passed to a store when it is opened.
func ExampleParse() {
	m, err := manifest.Parse("limits.yaml", []byte(`version: 1
resources:
  gpt-4o:
    limits:
      rpm: {capacity: 500}
entities:
  acme: {}
  acme-bot: {parent: acme, cascade: true}
`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Definitions.Resources["gpt-4o"][0].Capacity)
	fmt.Println(m.Definitions.Entities["acme-bot"].Parent)

	_, err = manifest.Parse("limits.yaml", []byte(`version: 1
resources:
  gpt-4o:
    limits:
      rpm: {capacity: 0}
`))
	fmt.Println(err)
	// Output:
	// 500
	// acme
	// limits.yaml:5:23: weir: invalid: resources.gpt-4o.limits.rpm.capacity "0": must be above zero
}

// Diff says what a new limits file would change.
func ExampleDiff() {
	parse := func(text string) *manifest.Manifest {
		m, err := manifest.Parse("limits.yaml", []byte(text))
		if err != nil {
			log.Fatal(err)
		}
		return m
	}
	before := parse("version: 1\nsystem: {limits: {rpm: {capacity: 600}}}\n")
	after := parse("version: 1\nsystem: {limits: {rpm: {capacity: 900}, tpm: {capacity: 100000}}}\n")
	for _, change := range manifest.Diff(before.Definitions, after.Definitions) {
		fmt.Println(&change)
	}
	// Output:
	// update system.limits.rpm: rpm:600 -> rpm:900
	// create system.limits.tpm: tpm:100000
}

// A limit on the command line.
func ExampleParseLimit() {
	l, err := manifest.ParseLimit("tpm:100000/min:200000")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Name, l.Kind, l.Capacity, l.RefillAmount, l.RefillPeriod)
	// Output: tpm bucket 200000 100000 1m0s
}
