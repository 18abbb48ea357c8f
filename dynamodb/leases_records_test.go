package dynamodb

import (
	"slices"
	"strconv"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/limiter"
)

// TestRecordThatCannotBeRead changes the record of a lease. Every call about the lease on a server
// that has to read it is an error that says so, and changes nothing.
func TestRecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const format = 8 // the byte of the format, after the version
	type change func(slot []byte) types.AttributeValue
	changes := map[string]change{
		"of another type": func([]byte) types.AttributeValue { return schema.String("x") },
		"empty":           func([]byte) types.AttributeValue { return binary([]byte{}) },
		"cut": func(slot []byte) types.AttributeValue {
			return binary(slot[:len(slot)-1])
		},
		"of a newer weir": func(slot []byte) types.AttributeValue {
			slot[format] = 2
			return binary(slot)
		},
	}
	for _, at := range []int{0, format + 1, format + 2, 30, -1} {
		changes["byte "+strconv.Itoa(at)] = func(slot []byte) types.AttributeValue {
			slot[(at+len(slot))%len(slot)] ^= 1
			return binary(slot)
		}
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 100, 1))
			here := w.trapped(t, limiter.Options{})
			id := weir.NewLeaseID(w.clock.now())
			if err := reserveAs(t.Context(), here.limiter, id, 4); err != nil {
				t.Fatal(err)
			}
			here.store.running.Wait()
			_, attribute, item := recordOf(t, w, id)
			item[attribute] = change(slices.Clone(item[attribute].(*types.AttributeValueMemberB).Value))
			w.put(t, item)
			for verb, c := range recordCalls(id) {
				other := w.trapped(t, limiter.Options{})
				err := c.call(t.Context(), other.limiter)
				if err == nil {
					t.Errorf("%s is answered by a record that cannot be read", verb)
				}
				other.store.running.Wait()
			}
			w.wantTaken(t, "acme", "rpm", 4)
		})
	}
}

func binary(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// TestLeaseWithoutBuckets deletes the bucket item of a lease and settles the lease on another server.
// The units that it gives back are gone with the item. An overrun is charged on the new item.
func TestLeaseWithoutBuckets(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]int64{
		"cancel": 0, "complete with less": 0, "complete with more": 3, "adjust to less": 0,
		"adjust to more": 3, "extend": 0,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 100, 1))
			here, other := w.trapped(t, limiter.Options{}), w.trapped(t, limiter.Options{})
			id := weir.NewLeaseID(w.clock.now())
			if err := reserveAs(t.Context(), here.limiter, id, 4); err != nil {
				t.Fatal(err)
			}
			here.store.running.Wait()
			bucket := schema.BucketID{
				Namespace: w.eye.config.Namespace, Entity: "acme", Resource: faultResource,
			}
			w.remove(t, bucket.Key())
			if err := recordCalls(id)[name].call(t.Context(), other.limiter); err != nil {
				t.Error(err)
			}
			other.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", taken)
		})
	}
}

// TestRecordDeleted deletes the record of a lease while its server still knows the lease. An update
// is then answered as one of an unknown lease, and neither charges nor gives back.
func TestRecordDeleted(t *testing.T) {
	t.Parallel()
	for name := range recordCalls(weir.LeaseID{}) {
		if name == "reserve" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 100, 1))
			s := w.trapped(t, limiter.Options{})
			id := weir.NewLeaseID(w.clock.now())
			if err := reserveAs(t.Context(), s.limiter, id, 4); err != nil {
				t.Fatal(err)
			}
			s.store.running.Wait()
			key, _, _ := recordOf(t, w, id)
			w.remove(t, key)
			wantCode(t, recordCalls(id)[name].call(t.Context(), s.limiter), weir.UnknownLease)
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", 4)
		})
	}
}

// TestTableFromBackup puts back the items of an earlier time: leases and balances from then. A lease
// that was settled since is live again, with the units that it stood for then, and can be settled
// once. A lease that was reserved since is unknown, also to the server that knew it.
func TestTableFromBackup(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(map[bool]string{false: "running servers", true: "new servers"}[restarted], func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 100, 1))
			s := w.trapped(t, limiter.Options{})
			id := func() weir.LeaseID { return weir.NewLeaseID(w.clock.now()) }
			settled, live, later := id(), id(), id()
			for _, l := range []weir.LeaseID{settled, live} {
				if err := reserveAs(t.Context(), s.limiter, l, 4); err != nil {
					t.Fatal(err)
				}
			}
			s.store.running.Wait()
			backup := w.scan(t)
			complete := recordCalls(settled)["complete with more"].call
			if err := complete(t.Context(), s.limiter); err != nil {
				t.Fatal(err)
			}
			if err := reserveAs(t.Context(), s.limiter, later, 20); err != nil {
				t.Fatal(err)
			}
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", 31)
			for _, item := range w.scan(t) {
				w.remove(t, schema.Key{
					PK: client.TextOf(item, schema.AttrPK), SK: client.TextOf(item, schema.AttrSK),
				})
			}
			for _, item := range backup {
				w.put(t, item)
			}
			w.wantTaken(t, "acme", "rpm", 8)
			if restarted {
				s = w.trapped(t, limiter.Options{})
			}
			if err := reserveAs(t.Context(), s.limiter, live, 4); err != nil {
				t.Errorf("repeat: %v", err)
			}
			wantCode(t, reserveAs(t.Context(), s.limiter, live, 5), weir.Conflict)
			_, err := s.limiter.Cancel(t.Context(), later)
			wantCode(t, err, weir.UnknownLease)
			for range 2 {
				if err := recordCalls(live)["complete with less"].call(t.Context(), s.limiter); err != nil {
					t.Errorf("complete: %v", err)
				}
			}
			// The server that has answered the complete remembers it; a new one settles the lease again.
			if err := complete(t.Context(), s.limiter); err != nil {
				t.Errorf("complete of a lease that is live again: %v", err)
			}
			s.store.running.Wait()
			want := int64(1 + 4)
			if restarted {
				want = 1 + 7
			}
			w.wantTaken(t, "acme", "rpm", want)
		})
	}
}

// recordOf reads the record of a lease, and returns the attribute of its slot.
func recordOf(
	t *testing.T, w *faultWorld, id weir.LeaseID,
) (key schema.Key, attribute string, item schema.Item) {
	t.Helper()
	key, slot := schema.LeaseRecordKey(w.eye.config.Namespace, id)
	item, err := w.eye.client.GetItem(t.Context(), key, true)
	if err != nil || item == nil {
		t.Fatalf("read the record of %v: %v, %v", id, item, err)
	}
	return key, schema.LeaseAttribute(slot), item
}

// put writes an item that has its key.
func (w *faultWorld) put(t *testing.T, item schema.Item) {
	t.Helper()
	in := &ddb.PutItemInput{TableName: &w.table.Name, Item: item}
	if _, err := w.eye.client.API.PutItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// remove deletes an item.
func (w *faultWorld) remove(t *testing.T, key schema.Key) {
	t.Helper()
	in := &ddb.DeleteItemInput{TableName: &w.table.Name, Key: key.Item()}
	if _, err := w.eye.client.API.DeleteItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// scan reads all items of the table.
func (w *faultWorld) scan(t *testing.T) []schema.Item {
	t.Helper()
	var all []schema.Item
	pages := ddb.NewScanPaginator(w.eye.client.API, &ddb.ScanInput{
		TableName: &w.table.Name, ConsistentRead: new(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

// TestVoidLeaseThatCannotBeRead cancels an ID whose slot a newer weir writes after the cancel has
// found the slot empty.
func TestVoidLeaseThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	w.limits(t, "acme", perSecond("rpm", 100, 1))
	here := w.trapped(t, limiter.Options{})
	id := weir.NewLeaseID(w.clock.now())
	if err := reserveAs(t.Context(), here.limiter, id, 4); err != nil {
		t.Fatal(err)
	}
	here.store.running.Wait()
	_, attribute, item := recordOf(t, w, id)
	item[attribute].(*types.AttributeValueMemberB).Value[8] = 2 // the format
	w.put(t, item)
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v", r)
		}
	}()
	exists, err := w.trapped(t, limiter.Options{}).store.VoidLease(t.Context(), w.clock.now(), id)
	t.Logf("exists %t, %v", exists, err)
	if err == nil {
		t.Error("no error")
	}
}
