package stream_test

import (
	"reflect"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

// refillChange is a change of an item between its record and the refill.
type refillChange struct {
	update string
	value  int64
	full   bool // tpm was full, so that it does not get its whole gain
	want   bool // the refill is written
}

// refillChanges are by name. Those without an update are made otherwise.
var refillChanges = map[string]refillChange{
	"a take":                  {"ADD b_rpm_tk :a", -50_000, false, true},
	"a take into debt":        {"ADD b_rpm_tk :a", -5_000_000, false, true},
	"another attribute":       {"SET tag = :a", 1, false, true},
	"vu in the future":        {"SET vu = :a", start.UnixMilli() + 1, false, true},
	"the count of one shard":  {"SET shard_count = :a", 1, false, true},
	"writes":                  {"ADD b_wcu_tk :a", -90_000, false, true},
	"a client's refill":       {"SET rf = :a", start.Add(-time.Second).UnixMilli(), false, false},
	"a refund":                {"ADD b_rpm_tk :a", 1, false, false},
	"a refund of another":     {"ADD b_tpm_tk :a", 1, false, false},
	"another capacity":        {"SET b_tpm_cp = :a", 700_000, false, false},
	"another refill":          {"SET b_tpm_ra = :a", 700_000, false, false},
	"another period":          {"SET b_rpm_rp = :a", 30_000, false, false},
	"a doubling":              {"SET shard_count = :a", 2, false, false},
	"disabled":                {"", 0, false, false},
	"vu":                      {"SET vu = :a", start.UnixMilli(), false, false},
	"expired":                 {"", 0, false, false},
	"a removed limit":         {"REMOVE b_tpm_tk SET tag = :a", 1, false, false},
	"a second's take if full": {"ADD b_tpm_tk :a", -10_000, true, true},
	"more than that":          {"ADD b_tpm_tk :a", -10_001, true, false},
	"deleted":                 {"", 0, false, false},
}

// make makes the change.
func (tc *refillChange) make(w *world, name string, b *schema.Bucket) {
	w.Helper()
	switch name {
	case "deleted":
		in := &ddb.DeleteItemInput{TableName: &w.table.Name, Key: b.ID().Key().Item()}
		if _, err := w.c.API.DeleteItem(w.Context(), in); err != nil {
			w.Fatal(err)
		}
	case "disabled", "expired":
		b.Disabled, b.TTL = name == "disabled", start.Unix()
		w.store(b.Item())
	default:
		w.write(b, tc.update, "", tc.value)
	}
}

// refill applies the refill to an item as it is before.
func (tc *refillChange) refill(t *testing.T, item schema.Item) {
	t.Helper()
	for name, gain := range map[string]int64{"b_rpm_tk": gained, "b_tpm_tk": gained} {
		n, err := schema.Int64(item[name])
		if err != nil {
			t.Fatal(err)
		}
		if tc.full && name == "b_tpm_tk" {
			gain = 10_000 // up to the capacity less a second's gain
		}
		item[name] = schema.Number(n + gain)
	}
	item[schema.AttrRF] = schema.Number(start.UnixMilli())
}

// TestRefillChanged changes an item between its record and the refill: a refill is written only
// if all that it goes by is still so.
func TestRefillChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range refillChanges {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, table: w.table, c: w.c, ns: w.ns, clock: w.clock, calls: w.calls}
			b := w.lowItem("rpm", "tpm")
			if tc.full {
				b.Limits[1].Balance = 580_000
			}
			w.store(b.Item())
			record := recordOf(b)
			tc.make(w, name, b)
			want := w.stored(b)
			r := w.refills()
			r.Refill(t.Context(), []*aggregator.Record{record})
			s := r.Summary()
			if lost := s.RefillsLost == 1 && s.Refills == 0; lost == tc.want || s.RefillsFailed != 0 {
				t.Errorf("got %+v", s)
			}
			if tc.want {
				tc.refill(t, want)
			}
			if got := w.stored(b); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
