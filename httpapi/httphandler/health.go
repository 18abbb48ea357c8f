package httphandler

import (
	"bytes"
	"context"
	_ "embed" // the document is part of the binary
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// healthBody answers /healthz and /readyz.
type healthBody struct {
	Status string `json:"status"`
}

// healthRoutes need no bearer token and tell nothing of what is limited.
func (h *Handler) healthRoutes() []route {
	return []route{
		{method: "GET", path: "/healthz", serve: (*Handler).healthy},
		{method: "GET", path: "/readyz", serve: (*Handler).ready},
		{method: "GET", path: "/openapi.json", plain: http.HandlerFunc(h.serveOpenAPI)},
	}
}

func (h *Handler) healthy(context.Context, *incoming) (*answer, error) {
	return &answer{body: healthBody{"ok"}}, nil
}

// ready shows the reason only if it is a [weir.Error], because anybody may ask. A server whose
// limits are superseded says so as it does to a reserve; everything else is unavailable, whatever
// the code.
func (h *Handler) ready(ctx context.Context, _ *incoming) (*answer, error) {
	err := h.options.Ready(ctx)
	if err == nil {
		return &answer{body: healthBody{"ok"}}, nil
	}
	fault := &weir.Error{Code: weir.Unavailable, Reason: "not ready"}
	if known, ok := errors.AsType[*weir.Error](err); ok {
		if known.Code == weir.Superseded {
			return nil, known
		}
		fault.Field, fault.Value, fault.Reason = known.Field, known.Value, known.Reason
	}
	return nil, apijson.Refusal(http.StatusServiceUnavailable, fault)
}

// serveOpenAPI answers with the document that describes all this. It holds no data.
func (h *Handler) serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	document := h.document
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(document)))
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(document) // who does not read it asks again
}

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
