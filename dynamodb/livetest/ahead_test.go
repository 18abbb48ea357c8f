package livetest

import (
	"context"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/soak"
)

// splitAhead returns a scenario with one bucket that the aggregator splits while weir processes use
// it. The number of writes that it takes for hot is low, so that every machine reaches it. On
// DynamoDB Local it is a number of writes in a minute.
func splitAhead(rate, each, percent int, found *aggregator.Summary) scenario {
	asked := int64(rate * each * meanCost * percent / 100)
	return scenario{
		name: "split ahead", offer: offer(rate, team), scarce: map[string]string{scarceLimit: team},
		world: World{Limits: map[string]map[string]Limit{team: limits(asked, 64)}},
		sides: []string{SideGo},
		during: func(f *fleet) func() {
			f.t.Helper()
			return aggregate(f, &dynamodb.AggregateOptions{HotWrites: 10, Interval: 50 * time.Millisecond}, found)
		},
	}
}

// aggregate turns the table's stream on and aggregates until the returned function is called.
func aggregate(f *fleet, o *dynamodb.AggregateOptions, found *aggregator.Summary) (end func()) {
	f.t.Helper()
	_, err := f.local.Client().UpdateTable(f.t.Context(), &ddb.UpdateTableInput{
		TableName: &f.offer.Table, StreamSpecification: &types.StreamSpecification{
			StreamEnabled: new(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	config := f.local.Config()
	table := &dynamodb.Table{
		Name: f.offer.Table, Options: &dynamodb.Options{Config: &config, Endpoint: f.local.Endpoint()},
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan error, 1)
	go func() {
		a, err := table.Aggregate(ctx, o)
		if a != nil {
			*found = *a
		}
		done <- err
	}()
	return func() {
		f.t.Helper()
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	}
}

// TestLiveSplitAhead runs weir processes on one bucket while the aggregator splits it: all items
// agree on the count, what is admitted is within the definition, and every unit is accounted for.
// That it is no less than the definition is checked where time is not the machine's: in package
// stream.
func TestLiveSplitAhead(t *testing.T) {
	t.Parallel()
	each, seconds := soak.Amount(2, 3), soak.Amount(8, 25)
	var found aggregator.Summary
	f := play(t, splitAhead(20, each, 100, &found), each, seconds)
	f.judge(t)
	counts := make(map[int64]int)
	for _, item := range f.items {
		counts[item.Shards]++
	}
	t.Logf("%d doublings by the aggregator, %d counts raised, %d failed; items by their count: %v",
		found.Splits, found.Raised, found.SplitsFailed, counts)
	if found.Splits == 0 || found.SplitsFailed != 0 || len(counts) != 1 || counts[1<<found.Splits] == 0 {
		t.Error("the bucket was not split, or not on all shards")
	}
}
