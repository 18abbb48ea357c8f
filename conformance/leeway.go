package conformance

// Leeway is how a store may differ from docs/semantics.md, besides what its traits say. Each field
// loosens as little as possible; docs/new-backend.md says what each is for. The zero value loosens
// nothing.
type Leeway struct {
	// NoBubble is set if worlds do I/O that cannot run in a bubble of testing/synctest. Cases that
	// need a bubble are left out.
	NoBubble bool
	// WholeSeconds is set if the period of a configured bucket is a whole number of seconds.
	WholeSeconds bool
	// WholeSecondRest is set if units that are taken again after a shrink or a growth are held for
	// a whole number of seconds, and so up to a second longer. Random operations then advance time
	// by whole seconds only.
	WholeSecondRest bool
	// NoCallers is set if a world does not know its callers (weir.ContextWithCaller) and does not
	// bound their live leases: the model, and a client, whose server names its callers itself.
	NoCallers bool
	// NeverForgetsEarly is set if no ended lease is forgotten early, however many there are.
	NeverForgetsEarly bool
	// OwnClock is set if the store has a clock of its own that never steps back: a caller whose
	// clock steps back is told to wait from the latest instant that any call has brought. Random
	// operations then do not step back.
	OwnClock bool
	// EstimatedAvailable is set if the answer to a reservation made beside other calls may have the
	// available units of another instant. In histories of concurrent calls such an answer must have
	// at most what the limits hold, and a denial must have a limit that is exceeded. Whether it was
	// admitted or denied, and every status, must fit nevertheless.
	EstimatedAvailable bool
	// SeveralServers is set if calls go to several servers of one store, each of which remembers
	// leases. In histories of concurrent calls a repeated reservation may then report what is
	// available now, not what was available then, and an adjust that was applied, or an earlier
	// one, may be answered again after another server has ended the lease. In random operations a
	// repeated reservation may report what is available now, and of a lease that another server has
	// ended and that is forgotten since, a server may say that it has ended.
	SeveralServers bool
	// MayContend is set if concurrent calls may be denied as contended although their limits would
	// hold them. Calls made one after the other may not.
	MayContend bool
	// ChargesFirst is set if an update that charges one limit and refunds another is several writes,
	// the charges first, so that for a moment other calls find both charged. In histories of
	// concurrent calls an update then changes all limits of its lease in one direction.
	ChargesFirst bool
	// NotAtomicAcrossEntities is set if a reservation on several entities is several writes, so
	// that for a moment other calls may be denied by units that it gives back.
	NotAtomicAcrossEntities bool
}

// mayDenyEarly reports whether concurrent calls may be denied although their limits would hold
// them.
func (l *Leeway) mayDenyEarly() bool { return l.MayContend || l.NotAtomicAcrossEntities }
