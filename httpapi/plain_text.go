package httpapi

import "strings"

// keptText copies pieces of a document, whose memory is used again, into one string: it keeps as
// many bytes as they have, whatever stood between them.
type keptText struct{ all strings.Builder }

// newKeptText makes room for the pieces of a known length together.
func newKeptText(length int) *keptText {
	k := &keptText{}
	k.all.Grow(length)
	return k
}

// keep returns a copy of a piece.
func (k *keptText) keep(piece []byte) string {
	from := k.all.Len()
	k.all.Write(piece)
	return k.all.String()[from:]
}
