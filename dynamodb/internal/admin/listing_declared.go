package admin

import (
	"context"
	"iter"
	"strings"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// ManyRows is the number of rows of one entity above which skipping them is cheaper than reading
// them: another query costs about as much as this many rows.
const ManyRows = 100

// indexedName is an entity that has rows in the namespace's index.
type indexedName struct {
	name string
	// declared is true if a row of a META or of a configuration was read.
	declared bool
	// cut is true if the entity may have more rows than were read.
	cut bool
}

// indexedRows are the names in some rows of the index.
type indexedRows struct {
	names []indexedName
	rows  int
	// more is true if there may be further rows, of the last name or of others.
	more bool
}

// declaredNames yields all declared entities whose names sort after the given one; the caller wants
// the given number of them. The index also has rows of usage, thousands for one entity. So
// declaredNames reads no more rows of an entity than needed, and then reads from the table whether
// the entity is declared.
func (a *Admin) declaredNames(
	ctx context.Context, after string, wanted int,
) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []indexedName
		for limit, more := ManyRows, true; more; {
			seen, err := a.readNames(ctx, after, limit)
			if err != nil {
				yield("", err)
				return
			}
			names = append(names, seen.names...)
			limit, more = seen.next(wanted-len(names)), seen.more
			if more {
				after = names[len(names)-1].name
			}
			if more && len(names) < min(wanted, client.MaxBatchGet) {
				continue
			}
			if names, err = a.filterDeclared(ctx, names); err != nil {
				yield("", err)
				return
			}
			for _, n := range names {
				if !yield(n.name, nil) {
					return
				}
			}
			wanted -= len(names)
			names = nil
		}
	}
}

// next returns the number of rows to ask for next, so that they hold about the given number of
// names. It is small if the last entities had many rows: skipping the rest of an entity's rows is
// then cheaper.
func (r *indexedRows) next(names int) int {
	n := len(r.names)
	if n == 0 || r.rows >= n*ManyRows {
		return ManyRows
	}
	return max(ManyRows, min(r.rows*names/n, 4*r.rows))
}

// readNames reads rows after a name, at most limit or one answer.
func (a *Admin) readNames(ctx context.Context, after string, limit int) (*indexedRows, error) {
	ns := a.config.Namespace
	in := client.KeysOnly(a.namesAfter(schema.GSI4, ns, schema.EntityPK(ns, ""), after))
	in.TableName, in.Limit = &a.Client.TableName, new(int32(limit))
	r := &indexedRows{more: true}
	for r.more && r.rows == 0 {
		out, err := a.Client.API.Query(ctx, in)
		if err != nil {
			return nil, client.Classify(err)
		}
		in.ExclusiveStartKey, r.more = out.LastEvaluatedKey, len(out.LastEvaluatedKey) > 0
		for _, row := range out.Items {
			if err := r.add(row); err != nil {
				return nil, err
			}
		}
	}
	if r.more {
		r.names[len(r.names)-1].cut = true
	}
	return r, nil
}

// add adds a row, which sorts after the rows added before.
func (r *indexedRows) add(row schema.Item) error {
	_, name, err := schema.ParseEntityPK(client.TextOf(row, schema.AttrPK))
	if err != nil {
		return client.Unreadable(err)
	}
	r.rows++
	if n := len(r.names); n == 0 || r.names[n-1].name != name {
		r.names = append(r.names, indexedName{name: name})
	}
	sk := client.TextOf(row, schema.AttrSK)
	if sk == schema.SKMeta || strings.HasPrefix(sk, schema.SKConfig+"#") {
		r.names[len(r.names)-1].declared = true
	}
	return nil
}

// filterDeclared keeps the names of declared entities. It reads from the table what the rows did
// not show.
func (a *Admin) filterDeclared(ctx context.Context, seen []indexedName) ([]indexedName, error) {
	var open []*indexedName
	var keys []schema.Key
	for i := range seen {
		if n := &seen[i]; n.cut && !n.declared {
			open = append(open, n)
			keys = append(keys, schema.MetaKey(a.config.Namespace, n.name))
		}
	}
	metas, err := a.Client.BatchGet(ctx, keys, false)
	if err != nil {
		return nil, err
	}
	err = client.Parallel(len(open), func(i int) error {
		if metas[i] != nil {
			open[i].declared = true
			return nil
		}
		var err error
		open[i].declared, err = a.anyConfig(ctx, keys[i].PK)
		return err
	})
	var kept []indexedName
	for _, n := range seen {
		if n.declared {
			kept = append(kept, n)
		}
	}
	return kept, err
}

// anyConfig reports whether an entity has a configuration item.
func (a *Admin) anyConfig(ctx context.Context, pk string) (bool, error) {
	in := client.KeysOnly(client.Partition(pk, schema.SKConfig+"#", false))
	in.Limit = new(int32(1))
	for page, err := range a.Client.QueryPages(ctx, in) {
		return len(page) > 0, err // one is enough
	}
	return false, nil
}
