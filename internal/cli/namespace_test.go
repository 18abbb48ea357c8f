package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/namespace"
	"github.com/weir-limiter/weir/store"
)

// The bearer tokens of the server: for all namespaces, and for that of the server.
const (
	allToken = "for-all-namespaces-0"
	ownToken = "for-one-namespace-00"
)

// namespaceWorld is a table with the namespaces default and served, and a server of the second.
type namespaceWorld struct {
	*testing.T

	table *dynamodb.Table
	store string // the table's URL
	url   string // the server's
	said  *serverOutput
	ids   map[string]string // the IDs of namespaces, by their names
}

// newNamespaceWorld makes a table. With serve it starts the program's own server.
func newNamespaceWorld(t *testing.T, serve bool) *namespaceWorld {
	t.Helper()
	w := &namespaceWorld{T: t, ids: map[string]string{}}
	w.store = "dynamodb://cli." + rand.Text()[:16] + "?region=us-east-1&endpoint=" +
		testkit.DynamoDB(t).Endpoint()
	var err error
	if w.table, err = store.Table(w.store); err != nil {
		t.Fatal(err)
	}
	if _, err := w.table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.table.Delete(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	w.register("served")
	if serve {
		w.serve("--store", w.store+"&namespace=served")
	}
	return w
}

// register registers a namespace, without the server.
func (w *namespaceWorld) register(name string) *namespace.Namespace {
	w.Helper()
	n, _, err := w.table.RegisterNamespace(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// serve starts a server with two bearer tokens.
func (w *namespaceWorld) serve(args ...string) {
	w.Helper()
	tokens := filepath.Join(w.TempDir(), "tokens.yaml")
	text := "tokens:\n  - {name: ops, role: admin, namespaces: all, token: " + allToken + "}\n" +
		"  - {name: team, role: admin, token: " + ownToken + "}\n"
	if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	w.said = &serverOutput{heard: make(chan string, 1)}
	args = append([]string{
		"serve", "--listen", "127.0.0.1:0", "--tokens", tokens, "--shutdown-delay", "1ms",
	}, args...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	ended := make(chan int, 1)
	go func() {
		streams := console.Streams{In: strings.NewReader(""), Out: w.said, Err: w.said}
		ended <- Run(ctx, args, streams, func(string) string { return "" })
	}()
	w.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			w.Errorf("weir serve ended with %d: %s", code, w.said)
		}
	})
	select {
	case w.url = <-w.said.heard:
	case <-time.After(wireStart):
		w.Fatalf("the server does not listen: %s", w.said)
	}
}

// client returns a client of the server with a bearer token.
func (w *namespaceWorld) client(token string) *httpapi.Client {
	w.Helper()
	c, err := httpapi.NewClient(w.url, &httpapi.ClientOptions{
		BearerToken: token, Timeout: time.Minute,
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return c
}

// run runs weir namespace on the server, if there is one, and otherwise on the table. In args,
// {NAME} is the ID of a namespace.
func (w *namespaceWorld) run(args string) result {
	w.Helper()
	env := map[string]string{connect.StoreEnv: w.store}
	if w.url != "" {
		env = map[string]string{connect.ServerEnv: w.url, connect.TokenEnv: allToken}
	}
	for name, id := range w.ids {
		args = strings.ReplaceAll(args, "{"+name+"}", id)
	}
	var out, errs bytes.Buffer
	s := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	all := append([]string{"namespace"}, strings.Split(args, " ")...)
	code := Run(w.Context(), all, s, func(name string) string { return env[name] })
	got := result{code, out.String(), errs.String()}
	var body namespaceBody
	if json.Unmarshal(out.Bytes(), &body) == nil && body.Name != "" {
		name := body.Name
		if known := w.ids[name]; known != "" && known != body.ID {
			name += " again"
		}
		w.ids[name] = body.ID
	}
	return result{code, w.plain(got.out), w.plain(got.err)}
}

// plain replaces what is different on every table: its name, IDs and times.
func (w *namespaceWorld) plain(text string) string {
	text = strings.ReplaceAll(text, w.table.Name, "TABLE")
	for name, id := range w.ids {
		text = strings.ReplaceAll(text, id, "<ID of "+name+">")
	}
	text = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+(Z|\+00:00)`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}

// TestNamespaceCommands runs the same commands on a table and on a server, and checks that they
// print the same and end with the same code.
func TestNamespaceCommands(t *testing.T) {
	t.Parallel()
	direct, served := newNamespaceWorld(t, false), newNamespaceWorld(t, true)
	for _, w := range []*namespaceWorld{direct, served} {
		n, err := w.table.Namespace(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		w.ids["default"], w.ids["served"] = n.ID, w.register("served").ID
	}
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"list", "default <ID of default> active TIME", 0},
		{"orphans", "no orphans", 0},
		{"orphans -o json", `"namespaces": []`, 0},
		{"register prod -o json", `"registered": true`, 0},
		{"register prod -o json", `"registered": false`, 0},
		{"register prod", "id <ID of prod>", 0},
		{"list -o json", `"namespace": "prod"`, 0},
		{"show prod", "status active", 0},
		{"register _", "is reserved", 2},
		{"register a/b", "must begin with a letter or a digit", 2},
		{"register " + strings.Repeat("x", 257), "must have at most 256 bytes, has 257", 2},
		{"register ", "NAME must not be empty", 2},
		{"register", "give NAME", 2},
		{"show nobody", `not found: namespace "nobody": is not registered on table TABLE`, 1},
		{"show a/b?c#d", "is not registered", 1},
		{"delete nobody", "is not registered", 1},
		{"delete default", "give --yes", 2},
		{"recover {prod}", "is active: there is nothing to recover", 1},
		{"recover 37b3m1eXQTY", "is not the ID of a namespace", 1},
		{"purge {prod}", "give --yes", 2},
		{"purge {prod} --yes", "only a deleted namespace can be purged", 1},
		{"delete prod", "status deleted", 0},
		{"delete prod", "is not registered", 1},
		{"orphans", "prod <ID of prod> deleted TIME TIME", 0},
		{"recover {prod} -o json", `"status": "active"`, 0},
		{"delete prod -o json", `"deleted_at": "TIME"`, 0},
		{"register prod -o json", `"registered": true`, 0},
		{"recover {prod}", "prod was registered again, as <ID of prod again>", 1},
		{"purge {prod} --yes --scan", "deleted 0 items", 0},
		{"purge {prod} --yes -o json", "is not the ID of a namespace", 1},
		{"delete default --yes", "status deleted", 0},
		{"list", "served <ID of served> active TIME", 0},
		{"recover {default}", "status active", 0},
	} {
		want, got := direct.run(c.args), served.run(c.args)
		if got != want {
			t.Errorf("weir namespace %s: the server:\n%+v\nthe table:\n%+v", c.args, got, want)
		}
		if got.code != c.code || !strings.Contains(got.out+got.err, c.says) {
			t.Errorf("weir namespace %s: got %+v, want code %d and %q", c.args, got, c.code, c.says)
		}
	}
}

// TestNamespacesOnServer administers the namespaces of a table with a client of a server.
func TestNamespacesOnServer(t *testing.T) {
	t.Parallel()
	w := newNamespaceWorld(t, true)
	ctx, c := t.Context(), w.client(allToken)
	prod, made, err := c.RegisterNamespace(ctx, "prod")
	if err != nil || !made || prod.Status != "active" || prod.CreatedAt == "" {
		t.Fatalf("register: got %+v, %t, %v", prod, made, err)
	}
	if n, err := w.table.Namespace(ctx, "prod"); err != nil || *n != *prod {
		t.Errorf("on the table: got %+v, %v, want %+v", n, err, prod)
	}
	all, err := c.Namespaces(ctx)
	if err != nil || len(all) != 3 || all[1] != *prod {
		t.Errorf("list: got %+v, %v", all, err)
	}
	w.fill("prod")

	for name, code := range map[string]weir.Code{
		"served": weir.Conflict, "nobody": weir.NotFound, "_": weir.Invalid,
	} {
		if _, err := c.DeleteNamespace(ctx, name); !errors.Is(err, code) {
			t.Errorf("delete %s: got %v, want %v", name, err, code)
		}
	}
	deleted, err := c.DeleteNamespace(ctx, "prod")
	if err != nil || deleted.ID != prod.ID || deleted.Status != "deleted" {
		t.Errorf("delete: got %+v, %v", deleted, err)
	}
	orphans, err := c.OrphanNamespaces(ctx)
	if err != nil || len(orphans) != 1 || orphans[0] != *deleted {
		t.Errorf("orphans: got %+v, %v", orphans, err)
	}
	if n, err := c.RecoverNamespace(ctx, prod.ID); err != nil || *n != *prod {
		t.Errorf("recover: got %+v, %v", n, err)
	}
	if _, err := c.PurgeNamespace(ctx, prod.ID, false, nil); !errors.Is(err, weir.Conflict) {
		t.Errorf("purge an active one: got %v", err)
	}
	if _, err := c.DeleteNamespace(ctx, "prod"); err != nil {
		t.Error(err)
	}
	items, err := c.PurgeNamespace(ctx, prod.ID, true, nil)
	if err != nil || items == 0 {
		t.Errorf("purge: got %d items, %v", items, err)
	}
	if left, err := c.OrphanNamespaces(ctx); err != nil || len(left) != 0 {
		t.Errorf("after the purge: got %+v, %v", left, err)
	}
	w.wantLogged("action=namespace_registered caller=ops .*place=namespace namespace=prod result=done",
		"action=namespace_deleted caller=ops .*namespace=served result=refused status=409",
		"action=namespace_recovered caller=ops .*namespace="+prod.ID+" result=done",
		"action=namespace_purged caller=ops .*namespace="+prod.ID+` result=done after="\d+ items deleted"`)
}

// fill sets a limit in a namespace.
func (w *namespaceWorld) fill(name string) {
	w.Helper()
	o := *w.table.Options
	o.Namespace, o.Principal = name, "test"
	s, err := dynamodb.Open(w.Context(), w.table.Name, &o)
	if err != nil {
		w.Fatal(err)
	}
	limits := []weir.Limit{{
		Name: "rpm", Kind: weir.Bucket, Capacity: 5, RefillAmount: 5, RefillPeriod: time.Minute,
	}}
	if err := s.WriteLimits(w.Context(), time.Now(), weir.Subject{Resource: "m"}, limits); err != nil {
		w.Fatal(err)
	}
	if err := s.Close(); err != nil {
		w.Fatal(err)
	}
}

// wantLogged checks that the server has logged lines.
func (w *namespaceWorld) wantLogged(lines ...string) {
	w.Helper()
	for _, line := range lines {
		if !regexp.MustCompile(line).MatchString(w.said.String()) {
			w.Errorf("the log has no line with %q: %s", line, w.said)
		}
	}
}

// TestNamespacesOfOneToken checks that a bearer token without all namespaces sees and changes none,
// also not that of its server.
func TestNamespacesOfOneToken(t *testing.T) {
	t.Parallel()
	w := newNamespaceWorld(t, true)
	other := w.register("other")
	gone := w.register("gone")
	if _, err := w.table.DeleteNamespace(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	c := w.client(ownToken)
	for name, ask := range map[string]func(ctx context.Context) error{
		"list":     func(ctx context.Context) error { return errOf(c.Namespaces(ctx)) },
		"orphans":  func(ctx context.Context) error { return errOf(c.OrphanNamespaces(ctx)) },
		"show":     func(ctx context.Context) error { return errOf(c.Namespace(ctx, "served")) },
		"delete":   func(ctx context.Context) error { return errOf(c.DeleteNamespace(ctx, "other")) },
		"recover":  func(ctx context.Context) error { return errOf(c.RecoverNamespace(ctx, gone.ID)) },
		"purge":    func(ctx context.Context) error { return errOf(c.PurgeNamespace(ctx, gone.ID, true, nil)) },
		"register": func(ctx context.Context) error { _, _, err := c.RegisterNamespace(ctx, "new"); return err },
	} {
		err := ask(t.Context())
		if !errors.Is(err, weir.PermissionDenied) || strings.Contains(err.Error(), other.ID) {
			t.Errorf("%s: got %v, want permission denied", name, err)
		}
	}
	all, err := w.table.Namespaces(t.Context())
	if err != nil || len(all) != 3 {
		t.Errorf("afterwards: got %+v, %v, want default, other and served", all, err)
	}
	if _, err := w.table.RecoverNamespace(t.Context(), gone.ID); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	w.wantLogged("msg=refused kind=role caller=team .*route=/v1/admin/namespaces/{namespace} ")
}

func errOf[T any](_ T, err error) error { return err }
