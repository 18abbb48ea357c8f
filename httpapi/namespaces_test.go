package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/namespace"
)

// namespaceAsks calls each method of [namespace.Admin], for a name or an ID.
var namespaceAsks = map[string]func(ctx context.Context, c namespace.Admin, of string) error{
	"show": func(ctx context.Context, c namespace.Admin, of string) error {
		_, err := c.Namespace(ctx, of)
		return err
	},
	"register": func(ctx context.Context, c namespace.Admin, of string) error {
		n, made, err := c.RegisterNamespace(ctx, of)
		if err != nil && (made || n != nil) {
			return errors.New("an answer with an error")
		}
		return err
	},
	"delete": func(ctx context.Context, c namespace.Admin, of string) error {
		_, err := c.DeleteNamespace(ctx, of)
		return err
	},
	"recover": func(ctx context.Context, c namespace.Admin, of string) error {
		_, err := c.RecoverNamespace(ctx, of)
		return err
	},
	"purge": func(ctx context.Context, c namespace.Admin, of string) error {
		_, err := c.PurgeNamespace(ctx, of, false, nil)
		return err
	},
	"list": func(ctx context.Context, c namespace.Admin, _ string) error {
		_, err := c.Namespaces(ctx)
		return err
	},
	"orphans": func(ctx context.Context, c namespace.Admin, _ string) error {
		_, err := c.OrphanNamespaces(ctx)
		return err
	},
}

// TestClientNamespacesAnswers lets something answer that is no weir server, or about another
// namespace. Changes are sent once, questions again.
func TestClientNamespacesAnswers(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		`{}`, `{"namespace":"b","namespace_id":"b","status":"active","registered":true}`,
		`{"namespace":"a","registered":true}`, `[]`, `{"namespaces":null}`,
	} {
		sent := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			sent++
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}))
		t.Cleanup(server.Close)
		c, err := httpapi.NewClient(server.URL, &httpapi.ClientOptions{Attempts: 2, Backoff: 1})
		if err != nil {
			t.Fatal(err)
		}
		for name, ask := range namespaceAsks {
			sent = 0
			want := map[bool]int{true: 2, false: 1}[name == "show" || name == "list" || name == "orphans"]
			if err := ask(t.Context(), c, "a"); !errors.Is(err, weir.Unavailable) || sent != want {
				t.Errorf("%s, answered %s: got %v after %d requests, want %d", name, answer, err, sent, want)
			}
		}
	}
}

// TestClientNamespaceNames checks that names that a path cannot have are refused before a request.
func TestClientNamespaceNames(t *testing.T) {
	t.Parallel()
	c, err := httpapi.NewClient("http://127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range namespaceAsks {
		if name == "list" || name == "orphans" {
			continue
		}
		for _, of := range []string{"", ".", ".."} {
			err := ask(t.Context(), c, of)
			if !errors.Is(err, weir.Invalid) || !strings.Contains(err.Error(), "namespace") {
				t.Errorf("%s %q: got %v, want an invalid namespace", name, of, err)
			}
		}
	}
}
