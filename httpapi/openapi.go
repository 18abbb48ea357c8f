package httpapi

import _ "embed" // the document is part of the binary

//go:embed openapi.json
var openAPIDocument []byte

// openAPI returns the OpenAPI 3.1 document that describes every route of the handler. It is shared:
// do not change it.
func openAPI() []byte { return openAPIDocument }
