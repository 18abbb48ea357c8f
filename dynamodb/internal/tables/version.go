package tables

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
	"github.com/weir-limiter/weir/internal/schema"
)

const (
	// oldestSchema is the first version with the bucket items that weir reads. Before it, balances
	// are stored elsewhere, and have to be migrated.
	oldestSchema = "0.9.0"
	// UnderstoodRelease is the release of the Python library whose items weir can judge. A table with newer
	// items says so in its client_min_version.
	UnderstoodRelease = "0.17.0"
	// updatedBy is the writer that the version record names.
	updatedBy = "weir"
)

// ReadVersion reads the table's version record; nil if it has none. If there is only the record of a
// table without namespaces, it returns that one.
func (c *Table) ReadVersion(ctx context.Context) (*schema.Version, error) {
	v, err := client.Get(ctx, c.Client, schema.VersionKey(), true, schema.ParseVersion)
	if client.IsMissingTable(err) { // CheckTable has not noticed without permission to describe
		return nil, c.missing()
	}
	if err != nil || v != nil {
		return v, err
	}
	v, err = client.Get(ctx, c.Client, oldtable.VersionKey(), true, parseOldVersion)
	if errors.Is(err, weir.PermissionDenied) { // a policy for one namespace allows only present keys
		return nil, nil
	}
	return v, err
}

// parseOldVersion parses the version record of a table without namespaces.
func parseOldVersion(item schema.Item) (*schema.Version, error) {
	item = maps.Clone(item)
	maps.Copy(item, schema.VersionKey().Item())
	v, err := schema.ParseVersion(item)
	if err == nil {
		v.Old = true
	}
	return v, err
}

// CheckVersion returns an error for a table whose items weir would misread.
func CheckVersion(table string, v *schema.Version) error {
	if v == nil {
		return client.Fault(weir.NotFound, "store.table", table,
			"has no version record, so it is not prepared for weir: run weir table create, or deploy the "+
				"Python library's stack")
	}
	if v.Migration != "" {
		return migrating(table, v)
	}
	if v.Old {
		return client.Fault(weir.Unsupported, "schema_version", v.Schema,
			"of table "+table+" is of an older layout: "+migrateAdvice)
	}
	has, ok := ParseVersion(v.Schema)
	switch {
	case !ok:
		return client.Fault(weir.Unsupported, "schema_version", v.Schema,
			"of table "+table+" is not a version number")
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
			"of table "+table+" is not a version number")
	case slices.Compare(least, Version(UnderstoodRelease)) > 0:
		return client.Fault(weir.Unsupported, "client_min_version", v.ClientMin,
			"of table "+table+" is newer than "+UnderstoodRelease+
				", the highest version that this weir can read: use a newer weir")
	}
	return nil
}

// IsOlder reports whether a version record is of a layout that has to be migrated.
func IsOlder(v *schema.Version) bool {
	has, ok := ParseVersion(v.Schema)
	return ok && slices.Compare(has, Version(oldestSchema)) < 0
}

// migrateAdvice ends the errors about a table of an older layout.
const migrateAdvice = "run weir table migrate"

// migrating returns an error for a table that is being migrated, unless weir may use it already.
func migrating(table string, v *schema.Version) error {
	if v.Migration == schema.MigratingBuckets {
		return nil
	}
	return client.Fault(weir.Unavailable, "store.table", table,
		"is being migrated, and does not have all of its limits yet: try again in a moment; if the "+
			"migration was interrupted, "+migrateAdvice)
}

// RequireMigrated returns an error for a table that is being migrated.
func (c *Table) RequireMigrated(ctx context.Context) error {
	v, err := c.ReadVersion(ctx)
	if err != nil || v == nil || v.Migration == "" {
		return err
	}
	return client.Fault(weir.Unavailable, "store.table", c.TableName,
		"is being migrated: try again when weir table migrate has ended")
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
	return migrateAdvice
}

// Version parses one of the constants.
func Version(s string) []int {
	v, _ := ParseVersion(s)
	return v
}

// ParseVersion parses the three numbers at the beginning of a version; the third may be missing. It
// ignores a suffix such as "rc1".
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
