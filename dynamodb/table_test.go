package dynamodb

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/internal/testkit/calls"
)

// localTable returns a table on DynamoDB Local with a name of its own, which is deleted after the
// test. On a busy machine DynamoDB Local takes seconds to answer, so the timeouts are long. A test
// about missing answers sets its own.
func localTable(t *testing.T) *Table {
	t.Helper()
	local := testkit.DynamoDB(t)
	cfg := local.Config()
	cfg.APIOptions = append(cfg.APIOptions, calls.New(t, callsFile).Install)
	table := &Table{
		Name: "weir." + rand.Text()[:16], NoStream: true,
		Options: &Options{Config: &cfg, Endpoint: local.Endpoint(), WriteTimeout: time.Minute},
	}
	t.Cleanup(func() { dropTable(t, table) })
	return table
}

// dropTable deletes a table after a test, if it exists and is one of weir's.
func dropTable(t *testing.T, table *Table) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	err := table.Delete(ctx)
	if err != nil && !errors.Is(err, weir.NotFound) && !errors.Is(err, weir.Unsupported) {
		t.Errorf("delete table: %v", err)
	}
}

// madeTable returns a localTable that exists.
func madeTable(t *testing.T) *Table {
	t.Helper()
	table := localTable(t)
	if made, err := table.Create(t.Context()); err != nil || !made {
		t.Fatalf("create: made %t, %v", made, err)
	}
	return table
}

// connected returns a connection to a table.
func connected(t *testing.T, table *Table) *tables.Table {
	t.Helper()
	c, err := table.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantError checks an error's code and field, and that it contains the words.
func wantError(t *testing.T, err error, code weir.Code, field, words string) {
	t.Helper()
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != code || e.Field != field || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v; want %s about %q: %s", err, code, field, words)
	}
}

func TestTableCreate(t *testing.T) {
	t.Parallel()
	for name, lean := range map[string]bool{"full": false, "lean": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := localTable(t)
			table.Lean = lean
			if made, err := table.Create(t.Context()); err != nil || !made {
				t.Fatalf("got %t, %v", made, err)
			}
			if made, err := table.Create(t.Context()); err != nil || made {
				t.Errorf("again: got %t, %v", made, err)
			}
			info, err := table.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if info.Lean != lean || (len(info.Lost) > 0) != lean || info.Status != "ACTIVE" {
				t.Errorf("got %+v", info)
			}
			if info.TTL != "ttl" || info.Stream != "" || info.Schema != "0.10.0" ||
				info.ClientMinVersion != "0.17.0" || info.Refused != nil {
				t.Errorf("got %+v", info)
			}
			want := []string{"GSI1", "GSI2", "GSI3", "GSI4", "LSI1", "LSI2", "LSI3", "LSI4", "LSI5"}
			if !slices.Equal(info.Indexes, want) {
				t.Errorf("got indexes %v, want %v", info.Indexes, want)
			}
			other := *table
			other.Lean = !lean
			_, err = other.Create(t.Context())
			wantError(t, err, weir.Conflict, "store.table", "is a "+name+" table")
			if again, err := table.Describe(t.Context()); err != nil || again.Lean != lean {
				t.Errorf("the other kind was made of it: %+v, %v", again, err)
			}
			s, err := Open(t.Context(), table.Name, table.Options)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.config.Namespace) != 11 {
				t.Errorf("got namespace %q", s.config.Namespace)
			}
			if err := table.Delete(t.Context()); err != nil {
				t.Error(err)
			}
			wantError(t, table.Delete(t.Context()), weir.NotFound, "store.table", "does not exist")
		})
	}
}

func TestTableCreatedConcurrently(t *testing.T) {
	t.Parallel()
	table := localTable(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := table.Create(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := table.Namespaces(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("got %v, %v; want the default namespace once", all, err)
	}
}

// TestTableCreateFinishes checks that a creation that was interrupted at any step is finished by
// the next one.
func TestTableCreateFinishes(t *testing.T) {
	t.Parallel()
	table := localTable(t)
	c := connected(t, table)
	in := schema.Table{Name: table.Name}.CreateInput()
	if _, err := c.API.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), table.Name, table.Options)
	wantError(t, err, weir.NotFound, "store.table", "weir table create")
	if _, _, err := table.RegisterNamespace(t.Context(), "x"); err == nil {
		t.Error("a namespace was registered on a table that is not ready")
	}
	if made, err := table.Create(t.Context()); err != nil || !made {
		t.Fatalf("got %t, %v", made, err)
	}
	info, err := table.Describe(t.Context())
	if err != nil || info.TTL == "" || info.Schema == "" || info.Refused != nil {
		t.Errorf("got %+v, %v", info, err)
	}
}

func TestTableStream(t *testing.T) {
	t.Parallel()
	table := localTable(t)
	table.NoStream = false
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := table.Describe(t.Context()); err != nil || info.Stream != "NEW_AND_OLD_IMAGES" {
		t.Errorf("got %+v, %v", info, err)
	}
}

// TestTableStreamTurnedOn checks that the stream of a table can be turned on once, and that a stream
// of another kind stays.
func TestTableStreamTurnedOn(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for _, want := range []bool{true, false} {
		if made, err := table.EnableStream(t.Context()); err != nil || made != want {
			t.Errorf("got %t, %v; want %t", made, err, want)
		}
		if info, err := table.Describe(t.Context()); err != nil || info.Stream != "NEW_AND_OLD_IMAGES" {
			t.Errorf("got %+v, %v", info, err)
		}
	}
	other := madeTable(t)
	api := connected(t, other).API
	_, err := api.UpdateTable(t.Context(), &ddb.UpdateTableInput{
		TableName: &other.Name, StreamSpecification: &types.StreamSpecification{
			StreamEnabled: new(true), StreamViewType: types.StreamViewTypeKeysOnly,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.EnableStream(t.Context())
	wantError(t, err, weir.Conflict, "store.table", "has a stream of KEYS_ONLY")
	if info, err := other.Describe(t.Context()); err != nil || info.Stream != "KEYS_ONLY" {
		t.Errorf("the stream was changed: %+v, %v", info, err)
	}
	_, err = localTable(t).EnableStream(t.Context())
	wantError(t, err, weir.NotFound, "store.table", "does not exist")
}

// TestTableProtected checks deletion protection, and point-in-time recovery, which DynamoDB Local
// does not have.
func TestTableProtected(t *testing.T) {
	t.Parallel()
	endpoint := testkit.Moto(t)
	cfg := testkit.LocalConfig(endpoint)
	for _, on := range []bool{false, true} {
		table := &Table{
			Name: "weir." + rand.Text()[:16], Protected: on, Recovery: on,
			Options: &Options{Config: &cfg, Endpoint: endpoint, WriteTimeout: time.Minute},
		}
		if made, err := table.Create(t.Context()); err != nil || !made {
			t.Fatalf("got %t, %v", made, err)
		}
		info, err := table.Describe(t.Context())
		if err != nil || info.Protected != on || info.Recovery != on || info.Stream == "" {
			t.Errorf("got %+v, %v", info, err)
		}
		err = table.Delete(t.Context())
		if !on {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantError(t, err, weir.Conflict, "store.table", "has deletion protection: take it off")
		if _, err := table.Describe(t.Context()); err != nil {
			t.Errorf("a protected table was deleted: %v", err)
		}
	}
}

// undefine removes the definitions of attributes with a prefix.
func undefine(in *ddb.CreateTableInput, prefix string) {
	in.AttributeDefinitions = slices.DeleteFunc(in.AttributeDefinitions,
		func(a types.AttributeDefinition) bool { return strings.HasPrefix(*a.AttributeName, prefix) })
}

// TestTableOfAnotherProgram checks that another program's table is neither used nor deleted.
func TestTableOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		alter func(*ddb.CreateTableInput)
		words string
	}{
		"no sort key": {func(in *ddb.CreateTableInput) {
			in.KeySchema = in.KeySchema[:1]
			in.LocalSecondaryIndexes = nil
			undefine(in, "LSI")
			undefine(in, "SK")
		}, "the sort key is not SK"},
		"no GSI3": {func(in *ddb.CreateTableInput) {
			in.GlobalSecondaryIndexes = slices.Delete(in.GlobalSecondaryIndexes, 2, 3)
			undefine(in, "GSI3")
		}, "has no index GSI3"},
		"a number as key": {func(in *ddb.CreateTableInput) {
			for i := range in.AttributeDefinitions {
				if *in.AttributeDefinitions[i].AttributeName == "GSI1SK" {
					in.AttributeDefinitions[i].AttributeType = types.ScalarAttributeTypeN
				}
			}
		}, "GSI1SK is not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := localTable(t)
			c := connected(t, table)
			in := schema.Table{Name: table.Name}.CreateInput()
			tc.alter(in)
			if _, err := c.API.CreateTable(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), table.Name, table.Options)
			wantError(t, err, weir.Unsupported, "store.table", tc.words)
			_, err = table.Create(t.Context())
			wantError(t, err, weir.Unsupported, "store.table", tc.words)
			wantError(t, table.Delete(t.Context()), weir.Unsupported, "store.table", tc.words)
			if info, err := table.Describe(t.Context()); err != nil || info.Refused == nil {
				t.Errorf("got %+v, %v", info, err)
			}
			foreigner := &ddb.DeleteTableInput{TableName: &table.Name}
			if _, err := c.API.DeleteTable(t.Context(), foreigner); err != nil {
				t.Error(err)
			}
		})
	}
}
