package livetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

const (
	// childVariable is the environment variable that makes the test binary one of the processes of
	// a run. Its value is the [Spec].
	childVariable = "WEIR_LIVETEST_CHILD"
	// childTimeout is the write timeout of a store, long enough for seven processes on few cores.
	childTimeout = 10 * time.Second
)

// child returns the command that runs the test binary as a process with weir.
func child(ctx context.Context, spec string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childVariable+"="+spec)
	return cmd
}

// TestChild is not a test by itself: the other tests start it as a process.
func TestChild(t *testing.T) {
	text := os.Getenv(childVariable)
	if text == "" {
		t.Skip("only the other tests start it")
	}
	var spec Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	if err := work(t.Context(), t, &spec); err != nil {
		t.Fatal(err)
	}
}

func work(ctx context.Context, t *testing.T, spec *Spec) error {
	log, err := NewLog(spec.Process, spec.Log)
	if err != nil {
		return err
	}
	local := testkit.DynamoDB(t)
	config := local.Config()
	store, err := dynamodb.Open(ctx, spec.Table, &dynamodb.Options{
		Namespace: spec.Namespace, Config: &config, Client: []func(*ddb.Options){Watch(log)},
		WriteTimeout: childTimeout, OnError: func(err error) { t.Error(err) },
	})
	if err != nil {
		return err
	}
	lim, err := limiter.New(store, &limiter.Options{StoreTimeout: childTimeout})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return err
	}
	start, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return err
	}
	actor := &actor{spec, local.Client(), lim}
	process := &Process{Spec: spec, Service: lim, Log: log, Act: actor.setLimits}
	return errors.Join(process.Run(ctx, start), lim.Close(), log.Close())
}

// actor makes the actions of a process.
type actor struct {
	spec    *Spec
	client  *ddb.Client
	limiter *limiter.Limiter
}

// setLimits changes an entity's limits, and records the earliest rf of its bucket just before.
func (p *actor) setLimits(ctx context.Context, a *Action, r *Record) error {
	if a.Do != Changed {
		return fmt.Errorf("weir has no action %q", a.Do)
	}
	for shard := range a.Shards {
		out, err := p.client.GetItem(ctx, &ddb.GetItemInput{
			TableName: &p.spec.Table, ConsistentRead: new(true),
			Key: p.spec.itemKey(a.Entity, shard),
		})
		if err != nil {
			return err
		}
		if rf := number(out.Item[schema.AttrRF]); rf != 0 && (r.RefilledMS == 0 || rf < r.RefilledMS) {
			r.RefilledMS = rf
		}
	}
	var limits []weir.Limit
	for name, l := range a.Limits {
		limits = append(limits, weir.Limit{
			Name: name, Kind: weir.Bucket, Capacity: l.Capacity, RefillAmount: l.Refill,
			RefillPeriod: time.Duration(l.PeriodS) * time.Second,
		})
	}
	at := weir.Subject{Entity: a.Entity, Resource: p.spec.Resource}
	return p.limiter.SetLimits(ctx, at, limits)
}
