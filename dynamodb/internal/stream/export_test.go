package stream

// ConvertItem is exported for tests.
var ConvertItem = convertItem
