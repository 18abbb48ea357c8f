package stream

// ConvertItem and PartsOf are exported for tests.
var (
	ConvertItem = convertItem
	PartsOf     = partsOf
)
