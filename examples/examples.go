// Package examples has the files of `weir demo`, which are built into the program.
package examples

import _ "embed" // for the files

// TraceName and LimitsName are the names of the files in weir's repository.
const (
	TraceName  = "examples/azure-llm-2023-code.csv"
	LimitsName = "examples/demo.yaml"
)

// Trace is an hour of real traffic, as a trace that `weir replay` reads. README.md has its source.
//
//go:embed azure-llm-2023-code.csv
var Trace []byte

// Limits is a limits file for that traffic, played 120 times as fast as it was recorded.
//
//go:embed demo.yaml
var Limits []byte
