package testkit

import (
	"context"
	"errors"
	"maps"
	"math"
	"sync"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// Counter counts the calls of an SDK client to DynamoDB, and the capacity that they consume. Its
// zero value is ready. It may be used by several clients concurrently.
type Counter struct {
	mu  sync.Mutex
	ops map[string]*Operation
}

// Operation has the figures of one operation, such as UpdateItem.
type Operation struct {
	// Calls is the number of calls by the caller.
	Calls int64
	// Attempts is the number of requests, including the SDK's retries.
	Attempts int64
	// Errors counts the calls that failed, by the error's code. An error without a code, such as a
	// lost connection, counts under "".
	Errors map[string]int64
	// Capacity is the consumed capacity that the server reports. It reports none if a call fails,
	// not even for a failed condition, which costs a write.
	Capacity Capacity
	// Tables is Capacity for the table alone, and Indexes for each index by its name.
	Tables Capacity
	// Indexes is the part of each index; it is nil if the operation used none.
	Indexes map[string]Capacity
}

// Capacity is consumed capacity in thousandths of a unit.
type Capacity struct {
	// ReadMilli is thousandths of read units.
	ReadMilli int64
	// WriteMilli is thousandths of write units.
	WriteMilli int64
}

func (c *Capacity) add(more Capacity) {
	c.ReadMilli += more.ReadMilli
	c.WriteMilli += more.WriteMilli
}

// Install adds the counter to one client: give it to [DynamoDBLocal.Client], or to
// dynamodb.NewFromConfig.
func (c *Counter) Install(o *ddb.Options) { o.APIOptions = append(o.APIOptions, c.Stack) }

// Stack adds the counter to one call: append it to APIOptions of a configuration or of a client. It
// asks for the consumed capacity if the caller did not.
func (c *Counter) Stack(stack *middleware.Stack) error {
	calls := middleware.InitializeMiddlewareFunc("weir:counter:calls", c.call)
	attempts := middleware.FinalizeMiddlewareFunc("weir:counter:attempts", c.attempt)
	return errors.Join(
		stack.Initialize.Add(calls, middleware.Before),
		stack.Finalize.Insert(attempts, "Retry", middleware.After),
	)
}

func (c *Counter) call(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	name := middleware.GetOperationName(ctx)
	in.Parameters = askCapacity(in.Parameters)
	out, metadata, err := next.HandleInitialize(ctx, in)
	c.mu.Lock()
	defer c.mu.Unlock()
	op := c.operation(name)
	op.Calls++
	if err != nil {
		op.Errors[errorCode(err)]++
		return out, metadata, err
	}
	for _, consumed := range consumedBy(out.Result) {
		op.consume(&consumed, readsOnly(name))
	}
	return out, metadata, nil
}

func (c *Counter) attempt(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	c.mu.Lock()
	c.operation(middleware.GetOperationName(ctx)).Attempts++
	c.mu.Unlock()
	return next.HandleFinalize(ctx, in)
}

// operation returns the figures of an operation, creating them if needed. The caller holds the
// lock.
func (c *Counter) operation(name string) *Operation {
	if c.ops == nil {
		c.ops = map[string]*Operation{}
	}
	if c.ops[name] == nil {
		c.ops[name] = &Operation{Errors: map[string]int64{}}
	}
	return c.ops[name]
}

// errorCode returns the code in the server's answer, or "".
func errorCode(err error) string {
	if named, ok := errors.AsType[smithy.APIError](err); ok {
		return named.ErrorCode()
	}
	return ""
}

// Snapshot returns the figures from the last Reset on, by operation. It has the attempts of calls
// that have not returned, but not these calls.
func (c *Counter) Snapshot() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(Counts, len(c.ops))
	for name, op := range c.ops {
		copied := *op
		copied.Errors, copied.Indexes = maps.Clone(op.Errors), maps.Clone(op.Indexes)
		out[name] = copied
	}
	return out
}

// Reset sets all figures to zero.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ops = nil
}

// milli turns units, which come in halves, into thousandths.
func milli(units *float64) int64 {
	if units == nil {
		return 0
	}
	return int64(math.Round(*units * 1000))
}
