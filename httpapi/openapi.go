package httpapi

import (
	"bytes"
	_ "embed" // the document is part of the binary
	"encoding/json"
)

//go:embed openapi.json
var openAPIDocument []byte

// openAPI returns the OpenAPI 3.1 document that describes every route of the handler. It is shared:
// do not change it.
func openAPI() []byte { return openAPIDocument }

// What the document says of bearer tokens, and of the version. openAPIFor replaces it.
const (
	documentVersion  = `"version": "1.0.0",`
	documentSecurity = `  "security": [
    {"bearerToken": []}
  ],
`
	documentSchemes = `    "securitySchemes": {
      "bearerToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "Each bearer token has a role: read, call or admin."
      }
    },
`
)

// openAPIFor returns the document as it fits a handler: with the version of the program, unless
// that is empty, and without security where no bearer tokens are needed.
func openAPIFor(version string, bearerTokens bool) []byte {
	document := openAPI()
	if version != "" {
		quoted, err := json.Marshal(version)
		if err != nil {
			panic(err) // it is a string
		}
		document = bytes.Replace(document, []byte(documentVersion),
			append(append([]byte(`"version": `), quoted...), ','), 1)
	}
	if !bearerTokens {
		for _, part := range []string{documentSecurity, documentSchemes} {
			document = bytes.Replace(document, []byte(part), nil, 1)
		}
	}
	return document
}
