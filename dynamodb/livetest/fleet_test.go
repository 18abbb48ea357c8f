package livetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

const (
	// leadUS is the time in microseconds between telling the processes of the start and the start.
	leadUS = 300_000
	// beginWithin and endWithin bound the time that processes need in addition to the run.
	beginWithin = 3 * time.Minute
	endWithin   = 2 * time.Minute
)

// scenario is one run: the configuration, and the calls of the processes.
type scenario struct {
	name  string
	world World
	// shards are the shard counts of the buckets that exist, full, when the run starts.
	shards map[string]int
	// offer is the spec of each process without its name, seed and files.
	offer Spec
	// actions are the actions of each process, by its name. Their times are in per cent of the run.
	actions map[string][]Action
	// scarce is the entity of whose bucket the most is asked, by limit.
	scarce map[string]string
	// doubles is the number of doublings.
	doubles int
	// sides are the sides that take part. Default: both.
	sides []string
	// during runs beside the calls; nil for nothing. It begins before them, and what it returns is
	// called after them.
	during func(f *fleet) (end func())
}

// fleet is the processes of one run and their data.
type fleet struct {
	scenario

	t         testing.TB
	local     *testkit.DynamoDBLocal
	venv      *testkit.Venv
	dir       string
	processes []*member
	records   []Record
	items     []Item
}

// member is one process.
type member struct {
	spec    Spec
	process *testkit.Process
	input   io.Writer
}

// play runs a scenario with a number of processes on each side, and reads their logs and the items.
func play(t testing.TB, s scenario, each, seconds int) *fleet {
	t.Helper()
	f := &fleet{
		scenario: s, t: t, local: testkit.DynamoDB(t), venv: testkit.ZAE(t),
		dir: t.TempDir(),
	}
	within := beginWithin + endWithin + time.Duration(seconds)*time.Second
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	f.offer.Endpoint, f.offer.Table = f.local.Endpoint(), f.local.Table(t, nil)
	f.offer.Seconds = seconds
	f.prepare(ctx)
	if f.sides == nil {
		f.sides = []string{SideGo, SidePython}
	}
	for i := range each {
		for _, side := range f.sides {
			f.begin(ctx, side, i)
		}
	}
	for _, m := range f.processes {
		if _, err := m.process.WaitLine(ctx, regexp.MustCompile(`^ready$`)); err != nil {
			t.Fatal(err)
		}
	}
	end := func() {}
	if f.during != nil {
		end = f.during(f)
	}
	f.start(ctx)
	for _, m := range f.processes {
		if err := m.process.Wait(ctx); err != nil {
			t.Fatalf("%s: %v: %s", m.spec.Process, err, m.process.Output())
		}
		records, err := ReadRecords(m.spec.Log)
		if err != nil {
			t.Fatal(err)
		}
		f.records = append(f.records, records...)
	}
	end()
	f.read(ctx)
	return f
}

// prepare creates the table and the configuration with the Python library.
func (f *fleet) prepare(ctx context.Context) {
	f.t.Helper()
	what, err := json.Marshal(map[string]any{
		"endpoint": f.offer.Endpoint, "table": f.offer.Table, "namespace": f.offer.Namespace,
		"resource": f.offer.Resource, "limits": f.world.Limits, "parents": f.world.Parents,
		"shards": f.shards,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.offer.NamespaceID = strings.TrimSpace(f.python(ctx, "prepare.py", string(what)))
	f.world.Resource = f.offer.Resource
}

// python runs a script to its end and returns its output.
func (f *fleet) python(ctx context.Context, script, argument string) string {
	f.t.Helper()
	cmd := f.venv.Command(ctx, "python", filepath.Join("testdata", script), argument)
	cmd.Env = append(cmd.Env, f.local.Environment()...)
	return testkit.Run(f.t, cmd)
}

// begin starts a process, which then waits for the start.
func (f *fleet) begin(ctx context.Context, side string, i int) {
	f.t.Helper()
	m := &member{spec: f.offer}
	m.spec.Process = side + "-" + strconv.Itoa(i)
	m.spec.Seed = uint64(2*i) + map[string]uint64{SideGo: 1}[side]
	m.spec.Log = filepath.Join(f.dir, m.spec.Process+".jsonl")
	for _, a := range f.actions[m.spec.Process] {
		a.AtMS = a.AtMS * int64(f.offer.Seconds) * 10 // from percent
		m.spec.Actions = append(m.spec.Actions, a)
	}
	spec, err := json.Marshal(m.spec)
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := f.venv.Command(ctx, "python", filepath.Join("testdata", "worker.py"), string(spec))
	cmd.Env = append(cmd.Env, f.local.Environment()...)
	if side == SideGo {
		cmd = child(ctx, string(spec))
		cmd.Env = append(cmd.Env, f.local.Environment()...)
	}
	if m.input, err = cmd.StdinPipe(); err != nil {
		f.t.Fatal(err)
	}
	m.process = testkit.Start(f.t, cmd)
	f.processes = append(f.processes, m)
}

// start makes all processes begin at one instant. Buckets that exist are full at that instant.
func (f *fleet) start(ctx context.Context) {
	f.t.Helper()
	f.world.StartUS = time.Now().UnixMicro() + leadUS
	f.world.EndUS = f.world.StartUS + int64(f.offer.Seconds)*1_000_000
	client := f.local.Client()
	now := strconv.FormatInt(f.world.StartUS/1000, 10)
	for entity, count := range f.shards {
		for shard := range count {
			_, err := client.UpdateItem(ctx, &ddb.UpdateItemInput{
				TableName: &f.offer.Table, UpdateExpression: new("SET rf = :now"),
				Key: f.offer.itemKey(entity, shard),
				ExpressionAttributeValues: map[string]types.AttributeValue{
					":now": &types.AttributeValueMemberN{Value: now},
				},
			})
			if err != nil {
				f.t.Fatal(err)
			}
		}
	}
	f.read(ctx)
	for _, item := range f.items {
		made := Record{
			Kind: Made, Process: "before-0", Item: item.Key, To: f.world.StartUS / 1000,
			Credit: make(map[string]int64),
		}
		for name, c := range item.Limits {
			made.Credit[name] = c.Balance + c.Consumed
		}
		f.records = append(f.records, made)
	}
	for _, m := range f.processes {
		if _, err := fmt.Fprintln(m.input, f.world.StartUS); err != nil {
			f.t.Fatalf("%s: %v: %s", m.spec.Process, err, m.process.Output())
		}
	}
}

// read reads all bucket items.
func (f *fleet) read(ctx context.Context) {
	f.t.Helper()
	f.items = nil
	pages := ddb.NewScanPaginator(f.local.Client(), &ddb.ScanInput{
		TableName: &f.offer.Table, ConsistentRead: new(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, attributes := range page.Items {
			if text(attributes["SK"]) == schema.SKState {
				f.items = append(f.items, itemOf(attributes))
			}
		}
	}
}

func itemOf(attributes map[string]types.AttributeValue) Item {
	item := Item{
		Key: text(attributes["PK"]), RefilledMS: number(attributes["rf"]),
		Shards: max(1, number(attributes["shard_count"])), Limits: make(map[string]Counts),
	}
	for attribute := range attributes {
		name, ok := counted(attribute)
		if !ok {
			continue
		}
		field := func(f string) int64 { return number(attributes["b_"+name+"_"+f]) }
		item.Limits[name] = Counts{field("tk"), field("tc"), field("cp"), field("ra"), field("rp")}
	}
	return item
}

// itemKey returns the key of a shard of a bucket.
func (s *Spec) itemKey(entity string, shard int) schema.Item {
	id := schema.BucketID{
		Namespace: s.NamespaceID, Entity: entity, Resource: s.Resource, Shard: shard,
	}
	return id.Key().Item()
}
