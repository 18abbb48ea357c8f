package replay

import "fmt"

// call reads a call from its fields.
func (t *traceReader) call(fields []string) {
	known := len(t.errs)
	at := &t.columns
	c := Call{
		AtMS:    t.at(fields[at.time]),
		Input:   t.tokens(t.Input, fields[at.input]),
		Output:  t.tokens(t.Output, fields[at.output]),
		Line:    int32(t.line),
		LastsMS: untold,
	}
	if c.Tokens() < 0 { // both are at least 0, so the sum is past int64
		t.mistake(t.Output, fields[at.output], "makes more than 64 bits hold, with "+t.Input)
	}
	if at.duration >= 0 {
		ms, reason := parseDurationMS(fields[at.duration], t.DurationUnit)
		t.judge(t.Duration, fields[at.duration], reason)
		c.LastsMS = int32(ms)
	}
	c.Caller = t.caller(fields)
	if len(t.errs) == known {
		t.calls = append(t.calls, c)
	}
}

// judge notes a mistake if there is a reason.
func (t *traceReader) judge(field, value, reason string) {
	if reason != "" {
		t.mistake(field, value, reason)
	}
}

// at reads when a call came, which is not before the call above it.
func (t *traceReader) at(text string) int64 {
	atMS, reason := parseInstant(text, t.TimeUnit)
	switch {
	case reason != "":
	case atMS < t.last.atMS && !t.Sort:
		reason = fmt.Sprintf("is before %s on line %d; --sort sorts the calls by time",
			shorten(string(t.last.text)), t.last.line)
	default:
		t.last.atMS, t.last.line = atMS, t.line
		t.last.text = append(t.last.text[:0], text...)
	}
	t.judge(t.Time, text, reason)
	return atMS
}

func (t *traceReader) tokens(field, text string) int64 {
	n, reason := parseTokens(text)
	t.judge(field, text, reason)
	return n
}

// caller reads who calls what.
func (t *traceReader) caller(fields []string) int32 {
	var entity, resource int32
	known := len(t.errs)
	if i := t.columns.entity; i >= 0 {
		number, reason := t.names.entities.number(fields[i])
		t.judge(t.Entity, fields[i], reason)
		entity = number
	}
	if i := t.columns.model; i >= 0 {
		number, reason := t.names.resources.number(fields[i])
		t.judge(t.Model, fields[i], reason)
		resource = number
	}
	if len(t.errs) > known {
		return 0
	}
	number, reason := t.names.caller(entity, resource, func() Caller {
		by := Caller{Resource: t.Resource}
		if t.columns.entity >= 0 {
			by.Entity = t.names.entities.names[entity]
		}
		if t.columns.model >= 0 {
			by.Resource = t.names.resources.names[resource]
		}
		return by
	})
	if reason != "" {
		t.mistake(t.Entity, fields[t.columns.entity], reason)
	}
	return number
}
