package dynamodb

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
)

// Table is a table to be looked after: made, described, deleted, and divided into namespaces. Its
// methods may be called at once. To limit calls with it, use [Open].
type Table struct {
	// Name is the table's.
	Name string
	// Options say how it is reached. Default: as [Open] does; what is about one namespace does not
	// count.
	Options *Options
	// Lean makes a table whose index by resource has keys alone, which halves what a bucket write
	// costs. Some reads of the Python library do not work on it, see [TableInfo]. It counts for
	// Create. Default: false, as the Python library's tables.
	Lean bool
	// NoStream makes a table without the stream that usage is gathered from. It counts for Create.
	// Default: false.
	NoStream bool
}

const (
	// tableTimeout bounds the making and the deletion of a table.
	tableTimeout = 10 * time.Minute
	// adminTimeout bounds all else that has no end of its own to wait for.
	adminTimeout = time.Minute
)

func (t *Table) connect(ctx context.Context) (*tables.Table, error) {
	c, err := connect(ctx, t.Name, t.Options)
	return &tables.Table{Client: c}, err
}

// Create makes the table, waits until it takes calls, switches its time to live on, registers the
// namespace "default" and writes the version record, in this order. It reports whether there was
// anything to do: a table that is complete stays as it is, and so does one of the other kind (lean
// or not), or with other keys, which is an error ([weir.Conflict], [weir.Unsupported]). A creation
// that was interrupted is finished by the next one.
func (t *Table) Create(ctx context.Context) (made bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tableTimeout)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil {
		return false, err
	}
	return c.Create(ctx, schema.Table{Name: t.Name, Lean: t.Lean, Stream: !t.NoStream})
}

// Delete deletes the table with all that is on it, and waits until it is gone. A table with other
// keys than weir's stays, and is an error; a missing one is [weir.NotFound].
func (t *Table) Delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tableTimeout)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil {
		return err
	}
	return c.Delete(ctx)
}

// TableInfo says what a table is. A part that the caller may not ask for is empty.
type TableInfo struct {
	Name string
	ARN  string
	// Status is DynamoDB's word: "ACTIVE" for a table that takes calls.
	Status  string
	Created time.Time
	// Lean is whether the index by resource has keys alone.
	Lean bool
	// Indexes are the names of all indexes, in order.
	Indexes []string
	// Items and Bytes are counted by DynamoDB every few hours.
	Items int64
	Bytes int64
	// Stream is what its stream keeps, such as "NEW_AND_OLD_IMAGES"; empty if it has none.
	Stream string
	// TTL is the attribute by which items go by themselves; empty if none do.
	TTL string
	// Schema, LambdaVersion, ClientMinVersion, UpdatedAt and UpdatedBy are the version record's,
	// empty where it has none.
	Schema           string
	LambdaVersion    string
	ClientMinVersion string
	UpdatedAt        string
	UpdatedBy        string
	// Refused is why [Open] would refuse the table; nil if it would not.
	Refused error
	// Lost are the reads of the Python library that do not work on this table, since they need all
	// attributes in the index by resource. Those of weir work.
	Lost []string
}

// readsLostOnLean returns the reads of the Python library that a lean table does not serve.
func readsLostOnLean() []string {
	return []string{
		"get_resource_capacity", "get_resource_buckets", "get_usage_snapshots by resource",
		"get_usage_summary by resource",
	}
}

// Describe tells what the table is, and whether weir can use it. Only a table that is not there is
// an error.
func (t *Table) Describe(ctx context.Context) (*TableInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	d, err := c.Describe(ctx)
	if err != nil {
		return nil, err
	}
	info := newTableInfo(d)
	info.Refused = errors.Join(tables.Usable(t.Name, d.TableStatus), tables.CheckLayout(t.Name, d))
	if info.Refused != nil {
		return info, nil
	}
	return info, info.addItems(ctx, c)
}

func newTableInfo(d *types.TableDescription) *TableInfo {
	info := &TableInfo{
		Name: client.Text(d.TableName), ARN: client.Text(d.TableArn), Status: string(d.TableStatus),
		Lean: tables.IsLean(d),
	}
	if d.CreationDateTime != nil {
		info.Created = *d.CreationDateTime
	}
	if d.ItemCount != nil {
		info.Items = *d.ItemCount
	}
	if d.TableSizeBytes != nil {
		info.Bytes = *d.TableSizeBytes
	}
	if s := d.StreamSpecification; s != nil && s.StreamEnabled != nil && *s.StreamEnabled {
		info.Stream = string(s.StreamViewType)
	}
	for i := range d.GlobalSecondaryIndexes {
		info.Indexes = append(info.Indexes, client.Text(d.GlobalSecondaryIndexes[i].IndexName))
	}
	for i := range d.LocalSecondaryIndexes {
		info.Indexes = append(info.Indexes, client.Text(d.LocalSecondaryIndexes[i].IndexName))
	}
	slices.Sort(info.Indexes)
	if info.Lean {
		info.Lost = readsLostOnLean()
	}
	return info
}

// addItems adds what the table's own items and its time to live say.
func (i *TableInfo) addItems(ctx context.Context, c *tables.Table) error {
	var err error
	if i.TTL, err = c.AttributeTTL(ctx); err != nil && !errors.Is(err, weir.PermissionDenied) {
		return err
	}
	v, err := c.ReadVersion(ctx)
	if errors.Is(err, weir.Unsupported) {
		i.Refused = err
		return nil
	}
	if err != nil {
		return err
	}
	i.Refused = tables.CheckVersion(c.TableName, v)
	if v == nil {
		v = &schema.Version{}
	}
	i.Schema, i.LambdaVersion, i.ClientMinVersion = v.Schema, v.Lambda, v.ClientMin
	i.UpdatedAt, i.UpdatedBy = v.UpdatedAt, v.UpdatedBy
	return nil
}
