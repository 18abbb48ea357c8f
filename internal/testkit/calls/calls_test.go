package calls

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func item(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: "#"},
	}
}

// TestRows checks the rows of each kind of call.
func TestRows(t *testing.T) {
	t.Parallel()
	names := map[string]string{"#a": "slices"}
	transaction := &ddb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{Item: item("n/BUCKET#a#b#0")}},
		{Update: &types.Update{Key: item("n/SYSTEM#"), ExpressionAttributeNames: names}},
		{Delete: &types.Delete{Key: item("_/SYSTEM#")}},
		{ConditionCheck: &types.ConditionCheck{Key: item("n/ENTITY#a")}},
	}}
	query := &ddb.QueryInput{
		IndexName: new("GSI4"), KeyConditionExpression: new("#n0 = :v0 AND begins_with(#n1, :v1)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":v0": &types.AttributeValueMemberS{Value: "n"},
			":v1": &types.AttributeValueMemberS{Value: "x"},
		},
	}
	for _, c := range []struct {
		operation string
		in        any
		want      []string
	}{
		{"GetItem", &ddb.GetItemInput{Key: item("n/ENTITY#a")}, []string{"GetItem table {ns}/ENTITY#*"}},
		{"GetItem", &ddb.GetItemInput{Key: item("SYSTEM#")}, []string{"GetItem table SYSTEM#"}},
		{"GetItem", &ddb.GetItemInput{Key: item("RESOURCE#a/b")}, []string{"GetItem table RESOURCE#*"}},
		{"PutItem", &ddb.PutItemInput{Item: item("_/SYSTEM#")}, []string{"PutItem table _/SYSTEM#"}},
		{"DeleteItem", &ddb.DeleteItemInput{Key: item("n/LEASES#1#2")}, []string{"DeleteItem table {ns}/LEASES#*"}},
		{"Query", query, []string{"Query GSI4 {ns}"}},
		{"Scan", &ddb.ScanInput{}, []string{"Scan table"}},
		{"Scan", &ddb.ScanInput{IndexName: new("GSI2")}, []string{"Scan GSI2"}},
		{"DescribeTable", &ddb.DescribeTableInput{}, []string{"DescribeTable table"}},
		{"BatchGetItem", &ddb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			"t": {Keys: []map[string]types.AttributeValue{item("n/ENTITY#a"), item("_/SYSTEM#")}},
		}}, []string{"BatchGetItem table {ns}/ENTITY#*", "BatchGetItem table _/SYSTEM#"}},
		{"BatchWriteItem", &ddb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
			"t": {
				{DeleteRequest: &types.DeleteRequest{Key: item("n/AUDIT#a")}},
				{PutRequest: &types.PutRequest{Item: item("n/RESOURCE#a")}},
			},
		}}, []string{"BatchWriteItem table {ns}/AUDIT#*", "BatchWriteItem table {ns}/RESOURCE#*"}},
		{"TransactWriteItems", transaction, []string{
			"PutItem table {ns}/BUCKET#*", "UpdateItem table {ns}/SYSTEM# PK,SK,slices",
			"DeleteItem table _/SYSTEM#", "ConditionCheckItem table {ns}/ENTITY#*",
		}},
	} {
		made, err := Of(c.operation, c.in)
		var got []string
		for _, one := range made {
			got = append(got, strings.TrimPrefix(rowOf(Use, one), Use+" "))
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.operation, got, err, c.want)
		}
	}
	for _, in := range []any{&ddb.ExecuteStatementInput{}, &ddb.TransactGetItemsInput{}, &ddb.QueryInput{}} {
		if made, err := Of("", in); err == nil {
			t.Errorf("%T: got %v, want an error: there is no rule for it", in, made)
		}
	}
}

// TestCompare checks what is said of rows that no test has seen, and what is written.
func TestCompare(t *testing.T) {
	file, seen := filepath.Join(t.TempDir(), "calls.txt"), filepath.Join(t.TempDir(), "seen")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(seenVariable, seen)
	mine := func(verb string) bool { return verb == Use }
	write(file, "# a comment\nuse A table\nuse B table\nread C table\n")
	write(seen, "use A table\nuse D table\nread E table\n")
	if err := compare(file, false, mine); err != nil {
		t.Errorf("of a part of the tests: %v", err)
	}
	err := compare(file, true, mine)
	if err == nil || !strings.HasSuffix(err.Error(), "that no test needs:\nuse B table") {
		t.Errorf("got %v, want that nothing needs use B table", err)
	}
	for _, c := range []struct {
		whole bool
		want  string
	}{
		{false, "read C table\nuse A table\nuse B table\nuse D table\n"},
		{true, "read C table\nuse A table\nuse D table\n"},
	} {
		t.Setenv(updateVariable, "1")
		if err := compare(file, c.whole, mine); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil || string(text) != header+c.want {
			t.Errorf("got %q, %v, want %q", text, err, c.want)
		}
	}
}

// TestMethodOf checks the names of methods, of functions, and of closures in them.
func TestMethodOf(t *testing.T) {
	t.Parallel()
	for function, want := range map[string]string{
		module + ".Open":                                       "Open",
		module + ".(*Store).Reserve":                           "Reserve",
		module + ".(*Store).Update.func1":                      "Update",
		module + "/internal/admin.(*Admin).restamp-range1":     "restamp",
		module + "/internal/admin.(*Admin).filterDeclared.f.2": "filterDeclared",
	} {
		if got := methodOf(function); got != want {
			t.Errorf("%s: got %s, want %s", function, got, want)
		}
	}
}
