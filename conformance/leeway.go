package conformance

// Leeway is what a store may do otherwise than docs/semantics.md says, beside what its traits say.
// Each field loosens as little as it can; docs/new-backend.md says what each is for. The zero
// value loosens nothing.
type Leeway struct {
	// NoBubble is true where worlds do I/O that a bubble of testing/synctest cannot hold: cases
	// that need one are left out.
	NoBubble bool
	// WholeSeconds is true where the period of a configured bucket is a whole number of seconds.
	WholeSeconds bool
	// WholeSecondRest is true where a hold that is made anew, after a shrink or a growth, lasts for
	// whole seconds more, and so up to a second longer. Random operations then let only whole
	// seconds pass.
	WholeSecondRest bool
	// NoCallers is true if a world is not told who calls (weir.ContextWithCaller), and its live
	// leases are not bounded: the model, and a client, whose server names its callers itself.
	NoCallers bool
	// NeverForgetsEarly is true where no ended lease is forgotten early, however many there are.
	NeverForgetsEarly bool
	// OwnClock is true where the store has a clock of its own, which never steps back: a caller
	// whose clock does is told to wait from the latest instant that any call has brought. Random
	// operations then do not step back.
	OwnClock bool
	// EstimatedAvailable is true where the answer to a reservation that is made beside other calls
	// may have what was available at another instant. In histories of calls at once such an answer
	// then has at most what the limits hold, and a denial a limit that is exceeded; that it was
	// admitted or denied, and every status, has to fit all the same.
	EstimatedAvailable bool
	// SeveralServers is true where calls go to several servers of one store, each of which
	// remembers leases. In histories of calls at once a repeated reservation may then say what is
	// available now, not what was then, and an adjust that was applied, or one before it, may be
	// answered again once another server has ended the lease.
	SeveralServers bool
	// MayContend is true where calls at once may be denied as contended though their limits would
	// hold them. Calls one after the other may not.
	MayContend bool
	// NotAtomicAcrossEntities is true where a reservation on several entities is made of several
	// writes, so that others may be denied, for a moment, by units that it gives back.
	NotAtomicAcrossEntities bool
}

// mayDenyEarly is true where calls at once may be denied though their limits would hold them.
func (l *Leeway) mayDenyEarly() bool { return l.MayContend || l.NotAtomicAcrossEntities }
