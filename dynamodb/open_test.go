package dynamodb

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

func TestOpenRefusesOptions(t *testing.T) {
	t.Parallel()
	cfg := &aws.Config{Region: "us-east-1"}
	at := func(endpoint string) *Options { return &Options{Config: cfg, Endpoint: endpoint} }
	for name, tc := range map[string]struct {
		table   string
		options *Options
		field   string
		words   string
	}{
		"no table":            {"", &Options{Config: cfg}, "store.table", "3 to 255"},
		"a short name":        {"ab", &Options{Config: cfg}, "store.table", "3 to 255"},
		"a path":              {"a/b", &Options{Config: cfg}, "store.table", `'/'`},
		"another alphabet":    {"täfel", &Options{Config: cfg}, "store.table", "'ä'"},
		"an ARN":              {"arn:aws:dynamodb:x", &Options{Config: cfg}, "store.table", "':'"},
		"no scheme":           {"limits", at("127.0.0.1:8000"), "store.endpoint", "address like"},
		"no host":             {"limits", at("http://"), "store.endpoint", "address like"},
		"another scheme":      {"limits", at("ftp://h"), "store.endpoint", "address like"},
		"a path behind":       {"limits", at("http://h/x"), "store.endpoint", "must have only"},
		"a secret":            {"limits", at("http://u:secret@h"), "store.endpoint", "a user or password"},
		"a secret alone":      {"limits", at("u:secret@h"), "store.endpoint", "a user or password"},
		"no region":           {"limits", &Options{Config: &aws.Config{}}, "store.region", "AWS_REGION"},
		"a namespace's words": {"limits", &Options{Config: cfg, Namespace: "_"}, "store.namespace", "reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), tc.table, tc.options)
			wantError(t, err, weir.Invalid, tc.field, tc.words)
			if s != nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v and %v", s, err)
			}
		})
	}
}

// ready returns a transport that answers for an active table whose description the caller may not
// read.
func ready(t *testing.T) http.RoundTripper {
	t.Helper()
	return script(fails("AccessDeniedException", ""), answerWith(http.StatusOK,
		`{"Item":{"PK":{"S":"_/SYSTEM#"},"SK":{"S":"#VERSION"},"schema_version":{"S":"0.10.0"}}}`),
		answerWith(http.StatusOK, `{"Item":{"PK":{"S":"_/SYSTEM#"},"SK":{"S":"#NAMESPACE#default"},`+
			`"namespace_id":{"S":"AAAAAAAAAAA"},"namespace_name":{"S":"default"},"status":{"S":"active"}}}`),
		answerWith(http.StatusOK, `{}`))
}

// TestOpenWithoutDescription checks that a caller with permission only to read and write items can
// open a table.
func TestOpenWithoutDescription(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), "limits", &Options{
		Config: &aws.Config{
			Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		},
		HTTP: &http.Client{Transport: ready(t)},
	})
	if err != nil || s.config.Namespace != "AAAAAAAAAAA" {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestOpenRefusedByAWS(t *testing.T) {
	t.Parallel()
	denied := &Options{
		Config: &aws.Config{
			Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		},
		HTTP: &http.Client{Transport: script(fails("AccessDeniedException", ""))},
	}
	_, err := Open(t.Context(), "limits", denied)
	wantError(t, err, weir.PermissionDenied, "", "AWS refused the credentials")
	gone := script(fails("AccessDeniedException", ""), fails("ResourceNotFoundException", ""))
	denied.HTTP = &http.Client{Transport: gone}
	_, err = Open(t.Context(), "limits", denied)
	wantError(t, err, weir.NotFound, "store.table", "weir table create")
}

func TestOpenStatus(t *testing.T) {
	t.Parallel()
	for status, words := range map[string]string{
		"CREATING": "still being created", "DELETING": "DELETING", "ARCHIVED": "ARCHIVED",
		"INACCESSIBLE_ENCRYPTION_CREDENTIALS": "INACCESSIBLE",
	} {
		_, err := Open(t.Context(), "limits", &Options{
			Config: &aws.Config{
				Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
			},
			HTTP: &http.Client{Transport: script(
				answerWith(http.StatusOK, `{"Table":{"TableStatus":"`+status+`"}}`),
			)},
		})
		wantError(t, err, weir.Unavailable, "store.table", words)
	}
}

func TestOpenMissingTable(t *testing.T) {
	t.Parallel()
	table := localTable(t)
	_, err := Open(t.Context(), table.Name, table.Options)
	wantError(t, err, weir.NotFound, "store.table", "weir table create")
	if _, err := table.Describe(t.Context()); !errors.Is(err, weir.NotFound) {
		t.Errorf("got %v: was it created by opening it?", err)
	}
}

func TestOpenMissingNamespace(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	o := *table.Options
	o.Namespace = "prod"
	_, err := Open(t.Context(), table.Name, &o)
	wantError(t, err, weir.NotFound, "store.namespace", "weir namespace register prod")
	if all, err := table.Namespaces(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("opening registered it: %v, %v", all, err)
	}
}

// TestOpenVersions checks the version records with which a table can be opened.
func TestOpenVersions(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	c := connected(t, table)
	for name, tc := range map[string]struct {
		schema, client string
		field, words   string // empty for a table that is opened
	}{
		"this one":             {"0.10.0", "0.0.0", "", ""},
		"without a minimum":    {"0.10.0", "", "", ""},
		"the one before":       {"0.9.1", "0.0.0", "", ""},
		"a later minor one":    {"0.11.0", "0.17.0", "", ""},
		"an old one":           {"0.8.0", "0.0.0", "schema_version", "older than 0.9.0"},
		"a new one":            {"1.0.0", "0.0.0", "schema_version", "use a newer weir"},
		"no version":           {"new", "0.0.0", "schema_version", "is not a version number"},
		"one number":           {"0", "0.0.0", "schema_version", "is not a version number"},
		"a new feature":        {"0.10.0", "0.18.0", "client_min_version", "use a newer weir"},
		"a newer patch":        {"0.10.0", "0.17.1rc1", "client_min_version", "use a newer weir"},
		"a release candidate":  {"0.10.0", "0.17.0rc1", "", ""},
		"no minimum version":   {"0.10.0", "latest", "client_min_version", "is not a version number"},
		"beyond all numbers":   {"0.10.0", "0.9999999999999999.0", "client_min_version", "is not a version number"},
		"a development schema": {"0.10.1.dev42+gced59de", "0.0.0", "", ""},
	} {
		v := &schema.Version{Schema: tc.schema, ClientMin: tc.client}
		putItem(t, c.Client, v.Item())
		_, err := Open(t.Context(), table.Name, table.Options)
		info, described := table.Describe(t.Context())
		if described != nil || (info.Refused == nil) != (tc.field == "") {
			t.Errorf("%s: described as %+v, %v", name, info, described)
		}
		if tc.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		wantError(t, err, weir.Unsupported, tc.field, tc.words)
	}
	item := (&schema.Version{Schema: "0.10.0"}).Item()
	item[schema.AttrSchemaVersion] = schema.Number(1)
	putItem(t, c.Client, item)
	_, err := Open(t.Context(), table.Name, table.Options)
	wantError(t, err, weir.Unsupported, "", "schema_version")
}

// TestReadOnly checks that a read-only store sends no writes.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	o := *table.Options
	o.ReadOnly = true
	s, err := Open(t.Context(), table.Name, &o)
	if err != nil {
		t.Fatal(err)
	}
	key := testKeys(1)
	for name, call := range map[string]func() error{
		"update":  func() error { return sendUpdate(t.Context(), s.client) },
		"put":     func() error { return sendPut(t.Context(), s.client) },
		"batch":   func() error { return s.client.BatchDelete(t.Context(), key) },
		"several": func() error { return sendTransact(t.Context(), s.client) },
	} {
		err := client.Classify(call())
		if !errors.Is(err, weir.Unsupported) || !strings.Contains(err.Error(), "reading only") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := s.client.BatchGet(t.Context(), key, true); err != nil {
		t.Error(err)
	}
}
