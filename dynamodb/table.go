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

// Table creates, describes and deletes a table, and divides it into namespaces. All methods may be
// called concurrently. To limit calls with the table, use [Open].
type Table struct {
	// Name is the name of the table.
	Name string
	// Options say how the table is reached, as for [Open]. Options that concern one namespace are
	// ignored.
	Options *Options
	// Lean makes Create create a table whose index by resource has keys only, which halves the cost
	// of a bucket write. Some reads of the Python library do not work on it, see [TableInfo].
	// Default: false, as the Python library's tables.
	Lean bool
	// NoStream makes Create create a table without the stream from which usage is collected.
	// Default: false.
	NoStream bool
	// Protected makes Create create a table that DynamoDB refuses to delete until its deletion
	// protection is taken off. Default: false.
	Protected bool
	// Recovery makes Create enable point-in-time recovery. Default: false.
	Recovery bool
	// PythonBefore makes Create create a table that clients of the Python library before 0.17 may
	// use. They do not understand every change of such a table, so the first change of an entity's
	// parent locks them out. Default: false, the library's 0.17 and later may use the table.
	PythonBefore bool

	client *client.Client // of the store that the table belongs to; nil to make one for each call
}

// Table returns the table that the store is on, for administration through the store's own client.
func (s *Store) Table() *Table {
	return &Table{Name: s.client.TableName, Options: &s.options, client: s.client}
}

const (
	// tableTimeout bounds the creation and the deletion of a table.
	tableTimeout = 10 * time.Minute
	// adminTimeout bounds all other administration.
	adminTimeout = time.Minute
)

func (t *Table) connect(ctx context.Context) (*tables.Table, error) {
	if t.client != nil {
		return &tables.Table{Client: t.client}, nil
	}
	c, err := connect(ctx, t.Name, t.Options)
	return &tables.Table{Client: c}, err
}

// Create creates the table, waits until it is active, enables its time to live and its recovery,
// registers the namespace "default" and writes the version record, in this order. It reports
// whether it changed anything: a complete table stays as it is. It returns an error,
// [weir.Conflict] or [weir.Unsupported], for a table of the other kind (lean or full) or with other
// keys, and does not change it. The next call finishes a creation that was interrupted.
func (t *Table) Create(ctx context.Context) (made bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tableTimeout)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil {
		return false, err
	}
	clientMin := tables.UnderstoodRelease
	if t.PythonBefore {
		clientMin = schema.AnyClient
	}
	return c.Create(ctx, schema.Table{
		Name: t.Name, Lean: t.Lean, Stream: !t.NoStream, Protected: t.Protected, Recovery: t.Recovery,
	}, clientMin)
}

// EnableStream enables the stream from which usage is collected, and waits until it is on. It reports
// whether it changed anything. A stream of another kind stays as it is, and the error has code
// [weir.Conflict].
func (t *Table) EnableStream(ctx context.Context) (made bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tableTimeout)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil {
		return false, err
	}
	return c.StreamOn(ctx)
}

// Delete deletes the table with all its items, and waits until it is gone. If the table has keys
// other than weir's or deletion protection, Delete returns an error and does not delete it. If the
// table does not exist, the error has code [weir.NotFound].
func (t *Table) Delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tableTimeout)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil {
		return err
	}
	return c.Delete(ctx)
}

// TableInfo describes a table. A part that the caller has no permission to read is empty.
type TableInfo struct {
	Name string
	ARN  string
	// Status is DynamoDB's table status: "ACTIVE" for a table that can be used.
	Status  string
	Created time.Time
	// Lean reports whether the index by resource has keys only.
	Lean bool
	// Indexes are the names of all indexes, in order.
	Indexes []string
	// Items and Bytes are counted by DynamoDB every few hours.
	Items int64
	Bytes int64
	// Stream is the view type of the table's stream, such as "NEW_AND_OLD_IMAGES"; empty if it has
	// none.
	Stream string
	// TTL is the attribute by which DynamoDB deletes expired items; empty if time to live is off.
	TTL string
	// Protected reports that DynamoDB refuses to delete the table.
	Protected bool
	// Recovery reports that point-in-time recovery is enabled.
	Recovery bool
	// Schema, LambdaVersion, ClientMinVersion, UpdatedAt and UpdatedBy are from the version record;
	// empty if it has none.
	Schema           string
	LambdaVersion    string
	ClientMinVersion string
	UpdatedAt        string
	UpdatedBy        string
	// Migration is the step of a migration from an older layout that has not ended: "limits" or
	// "buckets", see [Migration]. Schema is 999.0.0 then.
	Migration string
	// Leases are the names of the namespaces with lease records, in order. These items are weir's
	// own: the Python library does not know them.
	Leases []string
	// Refused is the reason why [Open] would refuse the table; nil if it would not.
	Refused error
	// Lost are the reads of the Python library that do not work on this table, because they need
	// all attributes in the index by resource. weir's own reads work.
	Lost []string
}

// readsLostOnLean returns the reads of the Python library that do not work on a lean table.
func readsLostOnLean() []string {
	return []string{
		"get_resource_capacity", "get_resource_buckets", "get_usage_snapshots by resource",
		"get_usage_summary by resource",
	}
}

// Describe describes the table and reports whether weir can use it. Only a missing table is an
// error.
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
		Lean: tables.IsLean(d), Stream: tables.StreamView(d),
		Protected: d.DeletionProtectionEnabled != nil && *d.DeletionProtectionEnabled,
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

// addItems adds the version record, the time to live and the recovery.
func (i *TableInfo) addItems(ctx context.Context, c *tables.Table) error {
	var err error
	if i.TTL, err = c.AttributeTTL(ctx); err != nil && !errors.Is(err, weir.PermissionDenied) {
		return err
	}
	if i.Recovery, err = c.Recovery(ctx); err != nil && !errors.Is(err, weir.PermissionDenied) {
		return err
	}
	if i.Leases, err = c.LeaseNamespaces(ctx); err != nil && !errors.Is(err, weir.PermissionDenied) {
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
	i.UpdatedAt, i.UpdatedBy, i.Migration = v.UpdatedAt, v.UpdatedBy, v.Migration
	return nil
}
