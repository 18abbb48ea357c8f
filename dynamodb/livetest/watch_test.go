package livetest

import (
	"maps"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func attributes(pairs ...string) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue)
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &types.AttributeValueMemberN{Value: pairs[i+1]}
	}
	return out
}

func bucketItem(pairs ...string) map[string]types.AttributeValue {
	out := attributes(pairs...)
	out["PK"] = &types.AttributeValueMemberS{Value: "n/BUCKET#e#r#0"}
	out["SK"] = &types.AttributeValueMemberS{Value: "#STATE"}
	return out
}

func TestNotes(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"#n0": "rf", "#n1": "b_a_b_tk", "#n2": "b_a_b_tc", "#n3": "shard_count", "#n4": "b_new_tk",
	}
	update := func(update, condition string, pairs ...string) *ddb.UpdateItemInput {
		return &ddb.UpdateItemInput{
			Key: bucketItem(), UpdateExpression: &update, ConditionExpression: &condition,
			ExpressionAttributeNames: names, ExpressionAttributeValues: attributes(pairs...),
		}
	}
	other := update("SET #n0 = :v0", "#n0 = :v0", ":v0", "1")
	other.Key["SK"] = &types.AttributeValueMemberS{Value: "#META"}
	cases := []struct {
		name    string
		request any
		want    *Record // nil for no record
	}{
		{"a refill", update(
			"SET #n0 = :v0 ADD #n1 :v2, #n2 :v3 REMOVE #n3", "#n0 = :v1 AND #n1 BETWEEN :v2 AND :v3",
			":v0", "900", ":v1", "800", ":v2", "-300", ":v3", "1000",
		), &Record{Kind: Write, From: 800, To: 900, Credit: map[string]int64{"a_b": 700}}},
		{"consumption alone", update("ADD #n1 :v0, #n2 :v1", "#n1 >= :v1", ":v0", "-5", ":v1", "5"), nil},
		{"a refund that is cut", update("ADD #n1 :v0, #n2 :v1", "#n3 = :v2", ":v0", "3", ":v1", "-5", ":v2", "1"),
			&Record{Kind: Write, Credit: map[string]int64{"a_b": -2}}},
		{"a limit that begins", update("SET #n0 = :v0, #n4 = :v1", "#n0 = :v0", ":v0", "7", ":v1", "50"),
			&Record{Kind: Write, From: 7, To: 7, Credit: map[string]int64{"new": 50}}},
		{"another item", other, nil},
		{"a new item", &ddb.PutItemInput{Item: bucketItem("rf", "6", "b_x_tk", "40", "b_x_tc", "2", "b_x_cp", "99")},
			&Record{Kind: Made, To: 6, Credit: map[string]int64{"x": 42}}},
		{"a read", &ddb.GetItemInput{}, nil},
		{"a transaction", &ddb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{Item: bucketItem("rf", "6", "b_x_tk", "40")}},
		}}, &Record{Kind: Made, To: 6, Credit: map[string]int64{"x": 40}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := notes(c.request)
			if c.want == nil {
				if len(got) != 0 {
					t.Errorf("got %+v, want nothing", got[0])
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("got %d records, want one", len(got))
			}
			g := got[0]
			if g.Kind != c.want.Kind || g.From != c.want.From || g.To != c.want.To || !maps.Equal(g.Credit, c.want.Credit) {
				t.Errorf("got %+v, want %+v", g, c.want)
			}
		})
	}
}
