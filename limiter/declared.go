package limiter

import (
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
)

// DeclaredStore returns the store as one that a limits file can be applied to, and the limiter's
// clock. If it is none, the error has code [weir.Unsupported]. The changes themselves are made by
// the methods of the Limiter, with a context of [declare.WithClaim].
func (l *Limiter) DeclaredStore() (s declare.Store, now func() time.Time, err error) {
	if s, ok := l.store.(declare.Store); ok {
		return s, l.options.Now, nil
	}
	return nil, nil, weir.NewError(weir.Unsupported, "store", "",
		"takes its limits from a limits file: change that file, and reload the server")
}

// CheckDefinitions returns the errors, joined, with which the store or the limiter would refuse
// normalized definitions, such as a kind of limit that the store does not have. The field of each
// is its path in a limits file.
func (l *Limiter) CheckDefinitions(d *weir.Definitions) error { return l.checkDefinitions(d) }
