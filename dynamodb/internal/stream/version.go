package stream

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
)

// checkVersion returns an error for a table whose items this weir would misread, or whose usage the
// Python library's function counts.
func (r *Reader) checkVersion(ctx context.Context) error {
	v, err := r.tables.ReadVersion(ctx)
	if err != nil {
		return err
	}
	if err := tables.CheckVersion(r.tables.TableName, v); err != nil {
		return err
	}
	a := r.state.aggregator
	if v.Lambda == "" || a != nil && !a.TakenOver.IsZero() {
		return nil
	}
	if !r.o.TakeOver {
		return client.Fault(weir.Conflict, "lambda_version", v.Lambda, "of table "+r.tables.TableName+
			" names a function of the Python library that counts its usage, and two would count it twice: "+
			"turn that function's trigger off, and then run weir aggregate --take-over")
	}
	return r.takeOver(ctx)
}
