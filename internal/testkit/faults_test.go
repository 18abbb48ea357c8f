package testkit

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// noRetry turns off the SDK's retries, so that a client returns each fault.
func noRetry(o *ddb.Options) { o.Retryer = aws.NopRetryer{} }

// always hits the first request that the fault can concern, and no other.
func always(fault Fault) *FaultOptions {
	return &FaultOptions{Rules: []FaultRule{{Fault: fault, PerMille: 1000, Most: 1}}}
}

// count returns the number of items in a table.
func count(t *testing.T, d *DynamoDBLocal, table string) int32 {
	t.Helper()
	all := &ddb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	out, err := d.Client().Scan(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	return out.Count
}

func isErrno(want syscall.Errno) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

func isCode(want string) func(error) bool {
	return func(err error) bool { return errorCode(err) == want }
}

func isLate(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// The caller sees the error of each fault. The item exists if and only if the request was
// performed, and the call after it succeeds.
func TestFaultOnWrite(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	for _, c := range []struct {
		fault   Fault
		seen    func(error) bool
		written bool
		late    bool // the fault waits for the caller's deadline
	}{
		{fault: LostAnswer, seen: isErrno(syscall.ECONNRESET), written: true},
		{fault: LostRequest, seen: isErrno(syscall.ECONNRESET)},
		{fault: NoConnection, seen: isErrno(syscall.ECONNREFUSED)},
		{fault: DelayedAnswer, seen: isLate, written: true, late: true},
		{fault: DelayedRequest, seen: isLate, late: true},
		{fault: LateRequest, seen: isLate, written: true, late: true},
		{fault: Throttle, seen: isCode("ProvisionedThroughputExceededException")},
		{fault: Refuse, seen: isCode("ValidationException")},
		{fault: Fail, seen: isCode("InternalServerError")},
		{fault: FailAfter, seen: isCode("InternalServerError"), written: true},
		{fault: Conflict, seen: isCode("TransactionConflictException")},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			t.Parallel()
			table, faults := d.Table(t, nil), NewFaults(always(c.fault))
			client := d.Client(noRetry, faults.Install)
			ctx := t.Context()
			if c.late {
				short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				ctx = short
			}
			if _, err := client.PutItem(ctx, putItem(table, "a", true)); err == nil || !c.seen(err) {
				t.Errorf("got %v, want another error", err)
			}
			faults.Wait()
			want := int32(0)
			if c.written {
				want = 1
			}
			if got := count(t, d, table); got != want {
				t.Errorf("got %d items, want %d", got, want)
			}
			checkUnanswered(t, faults, c.fault, c.written)
			if _, err := client.PutItem(t.Context(), putItem(table, "b", true)); err != nil {
				t.Errorf("the call after it: %v", err)
			}
			if got := faults.Count(c.fault); got != 1 || faults.Asked() != 2 {
				t.Errorf("got %d faults in %d requests, want 1 in 2", got, faults.Asked())
			}
		})
	}
}

// checkUnanswered expects one Unanswered request if the request was performed, and none otherwise.
func checkUnanswered(t *testing.T, faults *Faults, fault Fault, performed bool) {
	t.Helper()
	unanswered := faults.Unanswered()
	if !performed {
		if len(unanswered) != 0 {
			t.Errorf("got %v, want no request that was performed", unanswered)
		}
		return
	}
	if len(unanswered) != 1 {
		t.Fatalf("got %d unanswered requests, want 1", len(unanswered))
	}
	u := unanswered[0]
	if u.Fault != fault || u.Operation != "PutItem" || u.Status != http.StatusOK ||
		!strings.Contains(string(u.Body), "b_rpm_tk") {
		t.Errorf("got %+v, want the write that was performed", u)
	}
}

// Unanswered distinguishes requests that the server refused from those that it performed.
func TestFaultRefusedRequestIsNotUnanswered(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	table, faults := d.Table(t, nil), NewFaults(&FaultOptions{
		Rules: []FaultRule{{Fault: LostAnswer, PerMille: 1000}},
	})
	client := d.Client(noRetry, faults.Install)
	for range 2 {
		_, err := client.PutItem(t.Context(), putItem(table, "a", true))
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want a broken connection", err)
		}
	}
	got := faults.Unanswered()
	if len(got) != 2 || got[0].Status != http.StatusOK || got[1].Status != http.StatusBadRequest ||
		!strings.Contains(string(got[1].Answer), "ConditionalCheckFailed") {
		t.Errorf("got %+v, want one performed and one refused by its condition", got)
	}
}

func TestFaultCut(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	writes := 0
	table, faults := d.Table(t, nil), NewFaults(&FaultOptions{Rules: []FaultRule{{
		Fault: Cut, PerMille: 1000, Most: 1,
		Match: func(r *FaultRequest) bool {
			if r.Operation == "PutItem" {
				writes++
			}
			return writes == 2
		},
	}}})
	client := d.Client(noRetry, faults.Install)
	put := func(key string) error {
		_, err := client.PutItem(t.Context(), putItem(table, key, true))
		return err
	}
	if err := put("a"); err != nil {
		t.Errorf("before the cut: %v", err)
	}
	for _, key := range []string{"b", "c"} {
		if err := put(key); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: got %v, want no connection", key, err)
		}
	}
	faults.Heal()
	if err := put("d"); err != nil {
		t.Errorf("healed: %v", err)
	}
	faults.Cut()
	if err := put("e"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("cut again: got %v, want no connection", err)
	}
	if got := count(t, d, table); got != 2 {
		t.Errorf("got %d items, want a and d", got)
	}
	if got := faults.Count(Cut); got != 3 {
		t.Errorf("got %d requests cut off, want 3", got)
	}
}

func TestFaultCancel(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	for _, c := range []struct {
		name    string
		reasons []string
		want    []string
	}{
		{"by default", nil, []string{"TransactionConflict", "None"}},
		{
			"as the rule says", []string{"", "ConditionalCheckFailed", "never used"},
			[]string{"None", "ConditionalCheckFailed"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			table, o := d.Table(t, nil), always(Cancel)
			o.Rules[0].Reasons = c.reasons
			client := d.Client(noRetry, NewFaults(o).Install)
			write := &ddb.TransactWriteItemsInput{}
			for _, key := range []string{"a", "b"} {
				put := putItem(table, key, true)
				write.TransactItems = append(write.TransactItems, types.TransactWriteItem{
					Put: &types.Put{TableName: put.TableName, Item: put.Item},
				})
			}
			_, err := client.TransactWriteItems(t.Context(), write)
			canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
			if !ok || len(canceled.CancellationReasons) != len(c.want) {
				t.Fatalf("got %v, want it canceled with %d reasons", err, len(c.want))
			}
			for i, reason := range canceled.CancellationReasons {
				if aws.ToString(reason.Code) != c.want[i] {
					t.Errorf("item %d: got %s, want %s", i, aws.ToString(reason.Code), c.want[i])
				}
			}
			if got := count(t, d, table); got != 0 {
				t.Errorf("got %d items, want none", got)
			}
			_, err = client.TransactWriteItems(t.Context(), write)
			if err != nil || count(t, d, table) != 2 {
				t.Errorf("got %v, want the call after it to write both", err)
			}
		})
	}
}

// The SDK retries a fault like a real failure, and the rule's code is used.
func TestFaultRetried(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	table := d.Table(t, nil)
	for _, code := range []string{"ThrottlingException", "RequestLimitExceeded"} {
		o := always(Throttle)
		o.Rules[0].Code = code
		faults := NewFaults(o)
		client := d.Client(faults.Install)
		_, err := client.PutItem(t.Context(), putItem(table, code, true))
		if err != nil || faults.Asked() != 2 {
			t.Errorf("%s: got %v after %d requests, want it repeated once", code, err, faults.Asked())
		}
		client = d.Client(noRetry, NewFaults(o).Install)
		_, err = client.PutItem(t.Context(), putItem(table, code, false))
		if named, ok := errors.AsType[smithy.APIError](err); !ok || named.ErrorCode() != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
}

// One seed and one caller always give the same run, with about the number of faults asked for.
func TestFaultSeed(t *testing.T) {
	t.Parallel()
	writes := func(r *FaultRequest) bool { return r.Operation == "PutItem" }
	run := func(seed uint64) string {
		f := NewFaults(&FaultOptions{Seed: seed, Rules: []FaultRule{
			{Fault: LostAnswer, PerMille: 200},
			{Fault: Throttle, PerMille: 300, Match: writes},
			{Fault: Conflict, PerMille: 0},
		}})
		var b strings.Builder
		for i := range 2000 {
			r := &FaultRequest{Operation: []string{"PutItem", "GetItem"}[i%2]}
			if rule := f.choose(r); rule != nil {
				b.WriteString(r.Operation + " " + rule.Fault.String() + ";")
			}
		}
		if n := f.Count(LostAnswer); n < 300 || n > 500 {
			t.Errorf("seed %d: got %d lost answers in 2000, want about 400", seed, n)
		}
		if n := f.Count(Throttle); n < 180 || n > 300 {
			t.Errorf("seed %d: got %d throttles in 1000 writes, want about 240", seed, n)
		}
		if n := f.Count(Conflict); n != 0 {
			t.Errorf("seed %d: got %d conflicts, want none", seed, n)
		}
		return b.String()
	}
	one, again, other := run(1), run(1), run(2)
	if one != again {
		t.Error("the same seed made another run")
	}
	if one == other {
		t.Error("another seed made the same run")
	}
	if strings.Contains(one, "GetItem throttle") {
		t.Error("a rule hit what it does not match")
	}
}
