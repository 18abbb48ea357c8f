package httphandler

import (
	"bytes"
	_ "embed" // for the document
	"encoding/json"
	"net/http"
	"strconv"
)

// openAPIDocument is the OpenAPI 3.1 document of all routes.
//
//go:embed openapi.json
var openAPIDocument []byte

// openAPIFor replaces the version and removes the parts about bearer tokens.
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

// openAPIFor returns the document of a handler. It contains the version of the program unless
// version is empty, and no security section unless bearer tokens are needed.
func openAPIFor(version string, bearerTokens bool) []byte {
	document := openAPIDocument
	if version != "" {
		quoted, err := json.Marshal(version)
		if err != nil {
			panic(err) // a string always marshals
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

// serveOpenAPI answers with the document. It needs no bearer token because it holds no data.
func (h *Handler) serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	document := h.document
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(document)))
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(document) // a client that did not get the document can ask again
}
