package testkit

import (
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// readOperations are the operations whose capacity is counted in read units.
var readOperations = []string{"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"}

func readsOnly(operation string) bool { return slices.Contains(readOperations, operation) }

// askCapacity returns a call's input that asks for the consumed capacity by table and index, if
// it has a field for that which the caller left empty. The caller's own input stays as it is.
func askCapacity(input any) any {
	const name = "ReturnConsumedCapacity"
	v := reflect.ValueOf(input)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return input
	}
	if field := v.Elem().FieldByName(name); !field.IsValid() || field.String() != "" {
		return input
	}
	copied := reflect.New(v.Type().Elem())
	copied.Elem().Set(v.Elem())
	copied.Elem().FieldByName(name).SetString(string(types.ReturnConsumedCapacityIndexes))
	return copied.Interface()
}

// consumedBy returns the consumed capacity that an output reports, by table.
func consumedBy(output any) []types.ConsumedCapacity {
	v := reflect.ValueOf(output)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := v.Elem().FieldByName("ConsumedCapacity")
	if !field.IsValid() {
		return nil
	}
	switch consumed := field.Interface().(type) {
	case []types.ConsumedCapacity:
		return consumed
	case *types.ConsumedCapacity:
		if consumed != nil {
			return []types.ConsumedCapacity{*consumed}
		}
	}
	return nil
}

// consume adds the capacity that a call consumed on one table.
func (op *Operation) consume(c *types.ConsumedCapacity, reads bool) {
	op.Capacity.add(capacityOf(c.CapacityUnits, reads))
	if c.Table != nil {
		op.Tables.add(capacityOf(c.Table.CapacityUnits, reads))
	}
	for _, indexes := range []map[string]types.Capacity{
		c.GlobalSecondaryIndexes, c.LocalSecondaryIndexes,
	} {
		for name, part := range indexes {
			if op.Indexes == nil {
				op.Indexes = map[string]Capacity{}
			}
			sum := op.Indexes[name]
			sum.add(capacityOf(part.CapacityUnits, reads))
			op.Indexes[name] = sum
		}
	}
}

func capacityOf(units *float64, reads bool) Capacity {
	if reads {
		return Capacity{ReadMilli: milli(units)}
	}
	return Capacity{WriteMilli: milli(units)}
}
