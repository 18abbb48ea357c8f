package migration

import (
	"context"
	"iter"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
	"github.com/weir-limiter/weir/internal/schema"
)

// parseKey is [oldtable.ParseKey] for the layout of the table: items of an even older layout
// count as unknown.
func (m *Migration) parseKey(key schema.Key) oldtable.Key {
	k := oldtable.ParseKey(key)
	switch {
	case k.Kind == oldtable.Present, k.Kind == oldtable.Version:
		return oldtable.Key{}
	case m.report.Namespaces != (k.Namespace != ""):
		return oldtable.Key{Kind: oldtable.Unknown}
	}
	return k
}

// scan yields the pages of all items that may be old, or only their keys.
func (m *Migration) scan(
	ctx context.Context, keysOnly bool,
) iter.Seq2[[]schema.Item, error] {
	e := &client.Expression{}
	begins := func(attribute, prefix string) string {
		return "begins_with(" + e.Name(attribute) + ", " + e.Text(prefix) + ")"
	}
	filter := begins(schema.AttrSK, "#BUCKET#")
	for _, prefix := range []string{schema.EntityPrefix, "RESOURCE#", "SYSTEM#", "AUDIT#"} {
		filter += " OR " + begins(schema.AttrPK, prefix)
	}
	in := &ddb.ScanInput{
		TableName: &m.TableName, ConsistentRead: new(true), FilterExpression: &filter,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	}
	if keysOnly {
		in.ProjectionExpression = new(e.Name(schema.AttrPK) + ", " + e.Name(schema.AttrSK))
	}
	return func(yield func([]schema.Item, error) bool) {
		for {
			out, err := m.API.Scan(ctx, in)
			if err != nil {
				yield(nil, client.Classify(err))
				return
			}
			if !yield(out.Items, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}

// places tells the first item of a bucket or of a place of the configuration from its others.
// They are in one partition, whose items a scan yields one after the other.
type places struct {
	pk   string
	seen map[oldtable.Key]bool // in this partition
}

// first reports whether an item is the first one of what it belongs to.
func (p *places) first(key schema.Key, k oldtable.Key) bool {
	switch k.Kind {
	case oldtable.Config:
		k.Kind = oldtable.Limit
	case oldtable.Bucket, oldtable.Limit:
		k.Limit = ""
	default:
		return true
	}
	if key.PK != p.pk || p.seen == nil {
		p.pk, p.seen = key.PK, make(map[oldtable.Key]bool)
	}
	seen := p.seen[k]
	p.seen[k] = true
	return !seen
}
