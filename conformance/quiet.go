package conformance

// quiet is a T for runs that are expected to fail: what they report is nobody's failure.
type quiet struct{ T }

func quietly(t T) T { return quiet{t} }

// givenUp is what a quiet T panics with, to end a run.
type givenUp struct{}

func (quiet) Logf(string, ...any) {}

func (quiet) Errorf(string, ...any) {}

func (quiet) Fatalf(string, ...any) { panic(givenUp{}) }

func (quiet) Skipf(string, ...any) { panic(givenUp{}) }
