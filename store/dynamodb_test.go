package store_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/store"
)

func TestTableOptions(t *testing.T) {
	t.Parallel()
	table, err := store.Table("dynamodb://my.limits-1_x?region=eu-central-1" +
		"&endpoint=http%3A%2F%2F127.0.0.1:8000&namespace=a+b&leases=process&writes=transactional&speculative=off")
	if err != nil {
		t.Fatal(err)
	}
	o := table.Options
	if table.Name != "my.limits-1_x" || o.Region != "eu-central-1" || o.Endpoint != "http://127.0.0.1:8000" ||
		o.Namespace != "a+b" || !o.ProcessLeases || !o.Transactional || !o.NoSpeculation || o.ReadOnly {
		t.Errorf("got %s %+v", table.Name, o)
	}
	plain, err := store.Table("dynamodb://limits?leases=table&writes=plain&speculative=on")
	if err != nil {
		t.Fatal(err)
	}
	if o := plain.Options; o.ProcessLeases || o.Transactional || o.NoSpeculation || o.Namespace != "" {
		t.Errorf("got %+v", o)
	}
}

func TestOpenDynamoDBRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ url, field, value, words string }{
		{"dynamodb:limits", "store", "dynamodb:", "must be dynamodb://TABLE"},
		{"dynamodb:", "store", "dynamodb:", "must be dynamodb://TABLE"},
		{"dynamodb://", "store", "dynamodb:", "must be dynamodb://TABLE"},
		{"dynamodb://key:secret@limits", "store", "dynamodb:", "credentials come from"},
		{"dynamodb://limits/secret", "store", "dynamodb:", "?NAME=VALUE after it"},
		{"dynamodb://ab?region=x", "store.table", "ab", "3 to 255"},
		{"dynamodb://li%20mits?region=x", "store.table", "li%20mits", "'%'"},
		{"dynamodb://limits?table=x", "store.table", "x", "is unknown"},
		{"dynamodb://limits?Region=x", "store.Region", "x", "is unknown"},
		{"dynamodb://limits?region=", "store.region", "", "must not be empty"},
		{"dynamodb://limits?region", "store.region", "", "must have a value"},
		{"dynamodb://limits?region=a&region=b", "store.region", "b", "twice"},
		{"dynamodb://limits?region=EU west", "store.region", "EU west", "like eu-central-1"},
		{"dynamodb://limits?namespace=", "store.namespace", "", "must not be empty"},
		{"dynamodb://limits?namespace=_&region=x&endpoint=http://127.0.0.1:1", "store.namespace", "_", "reserved"},
		{"dynamodb://limits?endpoint=", "store.endpoint", "", "must not be empty"},
		{"dynamodb://limits?endpoint=localhost", "store.endpoint", "localhost", "address like"},
		{"dynamodb://limits?endpoint=http://u:secret@h", "store.endpoint", "(hidden)", "a user or password"},
		{"dynamodb://limits?writes=fast", "store.writes", "fast", "transactional or plain"},
		{"dynamodb://limits?writes=", "store.writes", "", "transactional or plain"},
		{"dynamodb://limits?leases=server", "store.leases", "server", "process or table"},
		{"dynamodb://limits?speculative=no", "store.speculative", "no", "off or on"},
		{"dynamodb://limits?endpoint=%zz", "store.endpoint", "%zz", "percent"},
	} {
		b, err := store.Open(t.Context(), tc.url, nil)
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || b != nil {
			t.Errorf("%q: got %v, %v; want a typed error", tc.url, b, err)
			continue
		}
		if e.Code != weir.Invalid || e.Field != tc.field || e.Value != tc.value ||
			!strings.Contains(e.Reason, tc.words) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %+v, want about %s %q: %s", tc.url, e, tc.field, tc.value, tc.words)
		}
	}
	for _, other := range []string{"memory:", "tigerbeetle://h", "limits", ""} {
		if table, err := store.Table(other); !errors.Is(err, weir.Invalid) || table != nil {
			t.Errorf("%q: got %v, %v", other, table, err)
		}
	}
	defined := &store.Options{Definitions: definitions()}
	if _, err := store.Open(t.Context(), "dynamodb://limits", defined); !errors.Is(err, weir.Invalid) {
		t.Errorf("with definitions: got %v", err)
	}
}

func TestOpenDynamoDB(t *testing.T) {
	local := testkit.DynamoDB(t)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	at := "?region=us-east-1&endpoint=" + url.QueryEscape(local.Endpoint())
	open := func(u string) (driver.Store, error) { return store.Open(t.Context(), u, nil) }
	name := "store-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	if b, err := open("dynamodb://" + name + at); !errors.Is(err, weir.NotFound) || b != nil {
		t.Errorf("a missing table: got %v, %v", b, err)
	}
	table, err := store.Table("dynamodb://" + name + at)
	if err != nil {
		t.Fatal(err)
	}
	table.NoStream = true
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := table.Delete(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	b, err := open("dynamodb://" + name + at)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	b, err = open("dynamodb://" + name + at + "&namespace=prod")
	if !errors.Is(err, weir.NotFound) || b != nil {
		t.Errorf("a missing namespace: got %v, %v", b, err)
	}
}
