package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-limiter/weir/internal/schema"
)

func TestTable(t *testing.T) {
	t.Parallel()
	const full = "GSI1 ALL GSI2 ALL GSI3 KEYS_ONLY GSI4 KEYS_ONLY " +
		"LSI1 ALL LSI2 KEYS_ONLY LSI3 ALL LSI4 KEYS_ONLY LSI5 ALL"
	lean := strings.Replace(full, "GSI2 ALL", "GSI2 KEYS_ONLY", 1)
	for _, c := range []struct {
		table  schema.Table
		want   string
		stream bool
	}{
		{schema.Table{Name: "a"}, full, false},
		{schema.Table{Name: "a", Stream: true}, full, true},
		{schema.Table{Name: "a", Lean: true}, lean, false},
	} {
		in := c.table.CreateInput()
		var indexes []string
		for _, x := range in.GlobalSecondaryIndexes {
			indexes = append(indexes, fmt.Sprint(*x.IndexName, " ", x.Projection.ProjectionType))
		}
		for _, x := range in.LocalSecondaryIndexes {
			indexes = append(indexes, fmt.Sprint(*x.IndexName, " ", x.Projection.ProjectionType))
		}
		if got := strings.Join(indexes, " "); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.table, got, c.want)
		}
		if aws.ToString(in.TableName) != "a" || len(in.AttributeDefinitions) != 15 ||
			(in.StreamSpecification != nil) != c.stream {
			t.Errorf("%+v: got %+v", c.table, in)
		}
	}
}
