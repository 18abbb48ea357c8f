package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// The requests that are counted on DynamoDB.
const (
	countWrites  = "writes"
	countParents = "parent writes"
	countReads   = "reads"
)

// openDynamoDB starts a DynamoDB Local, on which each contestant gets a new table without a stream.
// It warms the server up first: a write takes three times as long until the server has compiled its
// code.
func openDynamoDB(ctx context.Context, s *settings) (*instance, error) {
	server, err := testkit.StartDynamoDB(ctx, nil)
	if err != nil {
		return nil, err
	}
	at := &instance{
		environment: environment{python: s.python, variables: server.Environment()},
		cpu:         func() int64 { return serverTime(server.Address()) },
		close:       server.Stop,
	}
	config := server.Config()
	at.prepare = func(ctx context.Context, name string, sp *spec) error {
		sp.Table, sp.Endpoint, sp.Region = name, server.Endpoint(), config.Region
		sp.Capacity, sp.Warm = plenty, s.warm
		t := &dynamodb.Table{
			Name: sp.Table, Options: &dynamodb.Options{Config: &config}, NoStream: true,
		}
		_, err := t.Create(ctx)
		if err == nil && sp.Kind == kindPython && at.environment.python == "" {
			at.environment.python, err = findPython(ctx)
		}
		return err
	}
	if err := warmUpWrites(ctx, at, s.heat); err != nil {
		at.close()
		return nil, fmt.Errorf("warmUpWrites: %w", err)
	}
	return at, nil
}

// warmUpWrites makes writes that are not measured: those of a weir whose callers each have an
// entity of their own, so that each call is a write.
func warmUpWrites(ctx context.Context, at *instance, writes int) error {
	if writes == 0 {
		return nil
	}
	c := &contestant{spec: onStore(kindTable, entityNames(storeCallers), 1)}
	if err := at.prepare(ctx, "bench-warmUpWrites", &c.spec); err != nil {
		return err
	}
	t, err := openTeam(ctx, c, &at.environment)
	if err == nil {
		_, err = t.run(command{Work: workReserve, Ops: writes})
	}
	return errors.Join(err, t.stop())
}

// findPython returns the path of a Python that has zae-limiter. The first call installs it.
func findPython(ctx context.Context) (string, error) {
	v, err := testkit.OpenZAE(ctx)
	if err != nil {
		return "", err
	}
	return v.Command(ctx, "python").Path, nil
}

// tableLimiter is a limiter on a table, with default options except that it waits longer.
type tableLimiter struct {
	limiter  *limiter.Limiter
	requests requests
}

// openTable opens weir on a table.
func openTable(ctx context.Context, s *spec) (*workload, error) {
	t, err := newTable(ctx, s)
	if err != nil {
		return nil, err
	}
	return t.world(s), nil
}

func newTable(ctx context.Context, s *spec) (*tableLimiter, error) {
	t := &tableLimiter{requests: requests{parent: s.Parent}}
	store, err := dynamodb.Open(ctx, s.Table, &dynamodb.Options{
		Region: s.Region, Endpoint: s.Endpoint,
		ProcessLeases: s.ProcessLeases,
		WriteTimeout:  patience, Client: []func(*ddb.Options){t.requests.install},
	})
	if err != nil {
		return nil, err
	}
	if t.limiter, err = limiter.New(store, &limiter.Options{StoreTimeout: patience}); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if s.Declare {
		if err := t.declare(ctx, s); err != nil {
			return nil, errors.Join(err, t.limiter.Close())
		}
	}
	return t, nil
}

// declare writes the limit and, for a cascade, the family.
func (t *tableLimiter) declare(ctx context.Context, s *spec) error {
	limit := weir.Limit{Name: "rpm", Capacity: s.Capacity}
	if err := t.limiter.SetLimits(ctx, weir.Subject{}, []weir.Limit{limit}); err != nil {
		return err
	}
	if s.Parent == "" {
		return nil
	}
	if err := t.limiter.SetEntity(ctx, s.Parent, "", false); err != nil {
		return err
	}
	for _, entity := range s.Entities {
		if err := t.limiter.SetEntity(ctx, entity, s.Parent, true); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableLimiter) world(s *spec) *workload {
	return &workload{
		works:  leaseWorks(s, t.limiter, weir.Costs{"rpm": 1}),
		counts: t.requests.counts, close: t.limiter.Close,
	}
}

// requests counts the requests to DynamoDB, as a middleware of the SDK.
type requests struct {
	parent string // the entity whose bucket is counted separately

	writes, parents, reads atomic.Int64
	copies                 atomic.Pointer[updateCopies] // collects the updates; nil to collect none
}

func (r *requests) counts() map[string]int64 {
	return map[string]int64{
		countWrites: r.writes.Load(), countParents: r.parents.Load(), countReads: r.reads.Load(),
	}
}

// install adds the counter before everything else that the client does with a request.
func (r *requests) install(o *ddb.Options) {
	// DynamoDB Local sends a checksum of 0 with each refusal, which the SDK would log each time.
	o.Logger = logging.Nop{}
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("count", r.count), middleware.Before)
	})
}

func (r *requests) count(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	switch p := in.Parameters.(type) {
	case *ddb.UpdateItemInput:
		r.writes.Add(1)
		if r.parent != "" && bucketEntity(p.Key) == r.parent {
			r.parents.Add(1)
		}
		if copies := r.copies.Load(); copies != nil {
			copies.add(p)
		}
	case *ddb.PutItemInput, *ddb.DeleteItemInput, *ddb.TransactWriteItemsInput, *ddb.BatchWriteItemInput:
		r.writes.Add(1)
	default:
		r.reads.Add(1)
	}
	return next.HandleInitialize(ctx, in)
}

// bucketEntity returns the entity of a bucket item, or "" for another item.
func bucketEntity(key map[string]types.AttributeValue) string {
	pk, _ := key["PK"].(*types.AttributeValueMemberS)
	if pk == nil {
		return ""
	}
	_, rest, _ := strings.Cut(pk.Value, "/BUCKET#")
	entity, _, _ := strings.Cut(rest, "#")
	return entity
}

// serverTime returns the processor time in nanoseconds of the Java process that listens on the port
// of an address; 0 if there is none, or if the system has no /proc.
func serverTime(address string) int64 {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0
	}
	for _, path := range commands {
		args, err := os.ReadFile(path)
		name, _, _ := bytes.Cut(args, []byte{0})
		if err == nil && filepath.Base(string(name)) == "java" &&
			bytes.Contains(args, []byte("\x00-port\x00"+port+"\x00")) {
			return statTime(filepath.Join(filepath.Dir(path), "stat"))
		}
	}
	return 0
}

// statTime reads the time in user and system mode from a process's stat. Its second field, the
// command, is in parentheses and may contain anything.
func statTime(path string) int64 {
	const tick = 10 * time.Millisecond // on every machine that Go runs on
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const user, system = 11, 12 // after the command
	if len(fields) <= system {
		return 0
	}
	inUser, err := strconv.ParseInt(fields[user], 10, 64)
	inSystem, failed := strconv.ParseInt(fields[system], 10, 64)
	if err != nil || failed != nil {
		return 0
	}
	return (inUser + inSystem) * int64(tick)
}
