package tables

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

const (
	// oldestSchema is the first with the bucket items that weir reads; those before it keep
	// balances elsewhere.
	oldestSchema = "0.9.0"
	// readsLike is the release of the Python library whose items weir can judge. A table that has
	// something newer on it says so in its client_min_version.
	readsLike = "0.17.0"
	// updatedBy says in the version record who wrote it.
	updatedBy = "weir"
)

// ReadVersion reads the table's version record; nil if it has none.
func (c *Table) ReadVersion(ctx context.Context) (*schema.Version, error) {
	v, err := client.Get(ctx, c.Client, schema.VersionKey(), true, schema.ParseVersion)
	if client.IsMissingTable(err) { // a caller that may not describe the table learns it here
		return nil, c.missing()
	}
	return v, err
}

// CheckVersion refuses a table whose items weir would misread.
func CheckVersion(table string, v *schema.Version) error {
	if v == nil {
		return client.Fault(weir.NotFound, "store.table", table,
			"has no version record, so nobody has made it ready: run weir table create, or deploy the "+
				"Python library's stack")
	}
	has, ok := ParseVersion(v.Schema)
	switch {
	case !ok:
		return client.Fault(weir.Unsupported, "schema_version", v.Schema, "of table "+table+" is no version")
	case has[0] != Version(schema.SchemaVersion)[0]:
		return client.Fault(weir.Unsupported, "schema_version", v.Schema, "of table "+table+" is "+
			versionRelation(has)+" than the "+schema.SchemaVersion+" that this weir works with: "+advice(has))
	case slices.Compare(has, Version(oldestSchema)) < 0:
		return client.Fault(weir.Unsupported, "schema_version", v.Schema, "of table "+table+" is older than "+
			oldestSchema+", the first that weir works with: "+advice(has))
	}
	least, ok := ParseVersion(v.ClientMin)
	switch {
	case v.ClientMin == "":
		return nil
	case !ok:
		return client.Fault(weir.Unsupported, "client_min_version", v.ClientMin,
			"of table "+table+" is no version")
	case slices.Compare(least, Version(readsLike)) > 0:
		return client.Fault(weir.Unsupported, "client_min_version", v.ClientMin,
			"of table "+table+" is newer than "+readsLike+
				", up to which this weir can read the table: use a newer weir")
	}
	return nil
}

func versionRelation(has []int) string {
	if slices.Compare(has, Version(schema.SchemaVersion)) > 0 {
		return "newer"
	}
	return "older"
}

func advice(has []int) string {
	if versionRelation(has) == "newer" {
		return "use a newer weir"
	}
	return "bring the table up to date with the Python library's upgrade command"
}

// Version reads one of the constants.
func Version(s string) []int {
	v, _ := ParseVersion(s)
	return v
}

// ParseVersion reads the three numbers at the beginning of a version; the third may be missing.
// What stands behind them, such as "rc1", does not count.
func ParseVersion(s string) ([]int, bool) {
	v := make([]int, 3)
	parts := strings.SplitN(s, ".", len(v))
	for i, part := range parts {
		digits := part
		if i == len(parts)-1 {
			end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
			if end >= 0 {
				digits = part[:end]
			}
		}
		n, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return nil, false
		}
		v[i] = int(n)
	}
	return v, len(parts) > 1
}
