package estimator

import "sync"

// Key identifies calls that are similar: the calls of an entity to a model.
type Key struct{ Entity, Model string }

// Basis says which calls an estimate is based on.
type Basis string

// The bases, the best first.
const (
	ByKey   Basis = "key"   // the key's own calls
	ByModel Basis = "model" // calls of every entity to the model
	ByAll   Basis = "all"   // calls of every entity to every model
	ByFirst Basis = "first" // no calls yet: Options.First
)

// Estimate is the answer of an [Estimator].
type Estimate struct {
	// Tokens is the number of tokens that the call should reserve; never negative.
	Tokens int64
	// Basis says which calls the estimate is based on, and Seen is their number, at most
	// Options.Window.
	Basis Basis
	Seen  int64
}

// Estimator learns from calls and estimates the next one. It is safe for concurrent use. Estimate
// and Learn hold its mutex for well below a microsecond, and allocate only for a new key or model.
type Estimator struct {
	share int64
	first int64

	mu      sync.Mutex
	keys    *table
	models  *table
	all     callHistory
	score   Score
	refused int64
}

// New returns an estimator that has learned nothing. If there are mistakes in the options, the
// error joins an [*OptionError] for each of them.
func New(o *Options) (*Estimator, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Estimator{
		share:  opts.Share,
		first:  opts.First,
		keys:   newTable(opts.Keys, opts.Window, opts.Share),
		models: newTable(opts.Models, opts.Window, opts.Share),
		all:    newWindow(opts.Window),
	}, nil
}

// Estimate returns how many tokens the next call of a key should reserve. It does not change the
// estimator: a key for which only Estimate is called is not remembered.
func (e *Estimator) Estimate(k Key) Estimate {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.keys.known[k]; known != nil {
		if tokens, ok := known.calls.estimate(e.share); ok {
			return Estimate{Tokens: tokens, Basis: ByKey, Seen: int64(known.calls.seen)}
		}
	}
	if known := e.models.known[Key{Model: k.Model}]; known != nil {
		if tokens, ok := known.calls.estimate(e.share); ok {
			return Estimate{Tokens: tokens, Basis: ByModel, Seen: int64(known.calls.seen)}
		}
	}
	if tokens, ok := e.all.estimate(e.share); ok {
		return Estimate{Tokens: tokens, Basis: ByAll, Seen: int64(e.all.seen)}
	}
	return Estimate{Tokens: e.first, Basis: ByFirst}
}

// Learn adds a call that has ended: what was estimated for it, which only the report uses, and what
// it used, both in tokens. A call with a negative use is not learned, because there is no such use;
// the report counts it as refused. A negative estimate counts as 0.
func (e *Estimator) Learn(k Key, estimated, used int64) {
	estimated = max(estimated, 0)
	e.mu.Lock()
	defer e.mu.Unlock()
	if used < 0 {
		e.refused = add(e.refused, 1)
		return
	}
	e.all.learn(used, e.share)
	e.score.add(estimated, used)
	if len(k.Model) > maxName {
		return
	}
	e.models.learn(Key{Model: k.Model}, estimated, used)
	if len(k.Entity) <= maxName {
		e.keys.learn(k, estimated, used)
	}
}

// maxName is the longest entity or model that is remembered, in bytes, so that a caller cannot fill
// the memory with long names. Calls with longer names count only for what they share with others.
const maxName = 256
