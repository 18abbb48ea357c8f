package conformance

// quietT is a T for runs that are expected to fail. It drops what they report.
type quietT struct{ T }

func quietly(t T) T { return quietT{t} }

// givenUp is the value with which a quietT panics to end a run.
type givenUp struct{}

func (quietT) Logf(string, ...any) {}

func (quietT) Errorf(string, ...any) {}

func (quietT) Fatalf(string, ...any) { panic(givenUp{}) }

func (quietT) Skipf(string, ...any) { panic(givenUp{}) }
