//go:build weir_function

package provision

import _ "embed"

//go:embed weir-aggregator.zip
var functionCode []byte

// FunctionCode returns the zip file of the aggregator's function for arm64 that is in a release of
// weir; nil in a build without it.
func FunctionCode() []byte { return functionCode }
