package httpapi

// appendJSON appends the problem as [encoding/json] writes it.
func (p *problemBody) appendJSON(text []byte) []byte {
	text = appendText(text, `{"type":`, p.Type)
	text = appendText(text, `,"title":`, p.Title)
	text = appendNumber(text, `,"status":`, int64(p.Status))
	text = appendText(text, `,"detail":`, p.Detail)
	text = appendSome(text, `,"code":`, string(p.Code))
	text = appendSome(text, `,"field":`, p.Field)
	text = appendSome(text, `,"value":`, p.Value)
	text = appendSome(text, `,"reason":`, p.Reason)
	for i := range p.Errors {
		text = append(text, between(i, `,"errors":[`)...)
		text = p.Errors[i].appendJSON(text)
	}
	text = appendEnd(text, len(p.Errors))
	if p.Allowed != nil {
		text = appendBool(text, `,"allowed":`, *p.Allowed)
	}
	text = appendSome(text, `,"lease_id":`, p.LeaseID)
	if p.RetryAfterMS != nil {
		text = appendNumber(text, `,"retry_after_ms":`, *p.RetryAfterMS)
	}
	text = appendTrue(text, `,"retry_after_at_least":`, p.AtLeast)
	text = appendTrue(text, `,"contended":`, p.Contended)
	for i := range p.Limits {
		text = append(text, between(i, `,"limits":[`)...)
		text = p.Limits[i].appendJSON(text)
	}
	text = appendEnd(text, len(p.Limits))
	for i, policy := range p.ViolatedPolicies {
		text = appendText(text, between(i, `,"violated-policies":[`), policy)
	}
	return append(appendEnd(text, len(p.ViolatedPolicies)), '}')
}

func (m *mistakeBody) appendJSON(text []byte) []byte {
	text = appendText(text, `{"code":`, string(m.Code))
	text = appendSome(text, `,"field":`, m.Field)
	text = appendSome(text, `,"value":`, m.Value)
	text = appendSome(text, `,"reason":`, m.Reason)
	return append(text, '}')
}

// between is what stands before element i of an array: its beginning, or a comma.
func between(i int, begin string) string {
	if i == 0 {
		return begin
	}
	return ","
}

// appendEnd ends an array of n elements; one without any was never begun.
func appendEnd(text []byte, n int) []byte {
	if n == 0 {
		return text
	}
	return append(text, ']')
}
