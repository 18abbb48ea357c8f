package httpapi

// appendJSON appends the status as [encoding/json] writes it.
func (b *statusBody) appendJSON(text []byte) []byte {
	text = appendText(text, `{"entity":`, b.Entity)
	text = appendText(text, `,"resource":`, b.Resource)
	text = appendText(text, `,"limit":`, b.Limit)
	text = appendText(text, `,"kind":`, string(b.Kind))
	text = appendText(text, `,"level":`, string(b.Level))
	text = appendNumber(text, `,"capacity":`, b.Capacity)
	text = appendNumber(text, `,"available":`, b.Available)
	text = appendNumber(text, `,"requested":`, b.Requested)
	text = appendBool(text, `,"exceeded":`, b.Exceeded)
	text = appendTrue(text, `,"shadow":`, b.Shadow)
	text = appendTrue(text, `,"superseded":`, b.Superseded)
	text = appendNonzero(text, `,"retry_after_ms":`, b.RetryAfterMS)
	text = appendTrue(text, `,"retry_after_at_least":`, b.AtLeast)
	return append(text, '}')
}
