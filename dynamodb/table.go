package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
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
	// maxStale is how often a description may still be of before the call that made or deleted the
	// table: DynamoDB's descriptions lag behind by seconds. With the pauses it is half a minute.
	maxStale = 30
)

func (t *Table) connect(ctx context.Context) (*tableClient, error) {
	return connect(ctx, t.Name, t.Options)
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
	in := schema.Table{Name: t.Name, Lean: t.Lean, Stream: !t.NoStream}.CreateInput()
	_, err = c.client.CreateTable(ctx, in)
	if _, there := errors.AsType[*types.ResourceInUseException](err); err != nil && !there {
		return false, classify(err)
	}
	made = err == nil
	d, err := c.awaitTable(ctx)
	if err != nil {
		return made, err
	}
	if isLean(d) != t.Lean {
		return false, fault(weir.Conflict, "store.table", t.Name,
			"exists already, and is a "+kindOf(d)+" table: the kind of a table cannot be changed")
	}
	v, err := c.readVersion(ctx)
	if err != nil {
		return made, err
	}
	if v != nil {
		return made, checkVersion(t.Name, v)
	}
	return true, c.initTable(ctx)
}

// awaitTable waits until a table that is being made takes calls, with all of its indexes. It may
// not be there at first.
func (c *tableClient) awaitTable(ctx context.Context) (*types.TableDescription, error) {
	for attempt := 0; ; attempt++ {
		d, err := c.describe(ctx)
		unseen := errors.Is(err, weir.NotFound) && attempt < maxStale
		if err != nil && !unseen {
			return nil, err
		}
		if !unseen && d.TableStatus != types.TableStatusCreating {
			if err := usable(c.table, d.TableStatus); err != nil {
				return nil, err
			}
			return d, checkLayout(c.table, d)
		}
		if err := backOff(ctx, attempt); err != nil {
			return nil, fmt.Errorf("table %s is still being made: %w", c.table, err)
		}
	}
}

// initTable gives a new table all that is not in its definition. The version record comes last: where
// it is, nothing is missing.
func (c *tableClient) initTable(ctx context.Context) error {
	if err := c.enableTTL(ctx); err != nil {
		return err
	}
	if _, _, err := c.registerNamespace(ctx, schema.DefaultNamespace); err != nil {
		return err
	}
	v := &schema.Version{
		Schema: schema.SchemaVersion, ClientMin: schema.ClientMinVersion,
		UpdatedAt: schema.Timestamp(c.now()), UpdatedBy: updatedBy,
	}
	put := c.putNew(v.Item()).Put
	_, err := c.client.PutItem(ctx, &ddb.PutItemInput{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
		ExpressionAttributeNames: put.ExpressionAttributeNames,
	})
	if outcomeOf(err).kind == writeRefused { // somebody else was faster
		return nil
	}
	return classify(err)
}

// enableTTL switches the time to live on, unless somebody else does.
func (c *tableClient) enableTTL(ctx context.Context) error {
	if on, err := c.attributeTTL(ctx); on != "" || err != nil {
		return err
	}
	_, err := c.client.UpdateTimeToLive(ctx, &ddb.UpdateTimeToLiveInput{
		TableName: &c.table, TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: new(schema.AttrTTL), Enabled: new(true),
		},
	})
	if err == nil {
		return nil
	}
	if on, failed := c.attributeTTL(ctx); on != "" && failed == nil {
		return nil // who was faster made this call a mistake
	}
	return classify(err)
}

// attributeTTL is the attribute by which items go by themselves, or soon will; empty if none do.
func (c *tableClient) attributeTTL(ctx context.Context) (string, error) {
	out, err := c.client.DescribeTimeToLive(ctx, &ddb.DescribeTimeToLiveInput{TableName: &c.table})
	if err != nil {
		return "", classify(err)
	}
	switch d := out.TimeToLiveDescription; {
	case d == nil:
	case d.TimeToLiveStatus == types.TimeToLiveStatusEnabled,
		d.TimeToLiveStatus == types.TimeToLiveStatusEnabling:
		return text(d.AttributeName), nil
	}
	return "", nil
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
	d, err := c.describe(ctx)
	if err != nil {
		return err
	}
	if err := checkLayout(t.Name, d); err != nil {
		return err
	}
	_, err = c.client.DeleteTable(ctx, &ddb.DeleteTableInput{TableName: &c.table})
	if err != nil && !isMissingTable(err) {
		return classify(err)
	}
	for attempt := 0; ; attempt++ {
		d, err := c.describe(ctx)
		switch {
		case errors.Is(err, weir.NotFound):
			return nil
		case err != nil:
			return err
		case d.TableStatus != types.TableStatusDeleting && attempt >= maxStale:
			return fault(weir.Conflict, "store.table", t.Name,
				"was not deleted: DynamoDB says it is "+string(d.TableStatus))
		}
		if err := backOff(ctx, attempt); err != nil {
			return fmt.Errorf("table %s is still being deleted: %w", c.table, err)
		}
	}
}

func kindOf(d *types.TableDescription) string {
	if isLean(d) {
		return "lean"
	}
	return "full"
}
