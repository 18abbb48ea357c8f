package apijson

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// Health is the answer to GET /healthz and GET /readyz.
type Health struct {
	Status string `json:"status"`
}

// LimitStatus is the state of one limit.
type LimitStatus struct {
	Entity       string     `json:"entity"`
	Resource     string     `json:"resource"`
	Limit        string     `json:"limit"`
	Kind         weir.Kind  `json:"kind"`
	Level        weir.Level `json:"level"`
	Capacity     int64      `json:"capacity"`
	Available    int64      `json:"available"`
	Requested    int64      `json:"requested"`
	Exceeded     bool       `json:"exceeded"`
	Shadow       bool       `json:"shadow,omitempty"`
	Superseded   bool       `json:"superseded,omitempty"`
	RetryAfterMS int64      `json:"retry_after_ms,omitempty"`
	AtLeast      bool       `json:"retry_after_at_least,omitempty"`
	// AtMost follows from the other fields; a client does not read it.
	AtMost        bool  `json:"at_most,omitempty"`
	RetryLikelyMS int64 `json:"retry_likely_ms,omitempty"`
}

// StatusesOf returns the states of limits. The slice is never nil, so that an empty one is [].
func StatusesOf(limits []weir.LimitStatus) []LimitStatus {
	bodies := make([]LimitStatus, len(limits))
	for i := range limits {
		bodies[i] = limitStatusOf(&limits[i])
	}
	return bodies
}

func limitStatusOf(s *weir.LimitStatus) LimitStatus {
	return LimitStatus{
		Entity: s.Entity, Resource: s.Resource, Limit: s.Limit, Kind: s.Kind, Level: s.Level,
		Capacity: s.Capacity, Available: s.Available, Requested: s.Requested,
		Exceeded: s.Exceeded, Shadow: s.Shadow, Superseded: s.Superseded,
		RetryAfterMS: CeilUnits(s.RetryAfter, time.Millisecond), AtLeast: s.AtLeast,
		AtMost: s.AtMost(), RetryLikelyMS: CeilUnits(s.RetryLikely, time.Millisecond),
	}
}

// appendJSON appends the bytes that [encoding/json] writes for the status.
func (b *LimitStatus) appendJSON(text []byte) []byte {
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
	text = appendTrue(text, `,"at_most":`, b.AtMost)
	text = appendNonzero(text, `,"retry_likely_ms":`, b.RetryLikelyMS)
	return append(text, '}')
}

func statusesOf(bodies []LimitStatus) []weir.LimitStatus {
	if len(bodies) == 0 {
		return nil
	}
	out := make([]weir.LimitStatus, len(bodies))
	for i := range bodies {
		b := &bodies[i]
		out[i] = weir.LimitStatus{
			Entity: b.Entity, Resource: b.Resource, Limit: b.Limit, Kind: b.Kind, Level: b.Level,
			Capacity: b.Capacity, Available: b.Available, Requested: b.Requested,
			Exceeded: b.Exceeded, Shadow: b.Shadow, Superseded: b.Superseded,
			RetryAfter: milliseconds(b.RetryAfterMS), AtLeast: b.AtLeast,
			RetryLikely: milliseconds(b.RetryLikelyMS),
		}
	}
	return out
}

// anyNegativeWait reports whether a retry-after is below zero, which weir never answers.
func anyNegativeWait(bodies []LimitStatus) bool {
	return slices.ContainsFunc(bodies, func(b LimitStatus) bool {
		return b.RetryAfterMS < 0 || b.RetryLikelyMS < 0
	})
}

// LimitsStatus is the answer to GET /v1/status and GET /v1/resources/{resource}/capacity.
type LimitsStatus struct {
	Limits []LimitStatus `json:"limits"`
}

// ReadStatuses reads a [LimitsStatus].
func ReadStatuses(body []byte) ([]weir.LimitStatus, error) {
	b, err := Read[LimitsStatus](body)
	if err == nil && b.Limits == nil {
		err = errors.New("has no limits")
	}
	if err == nil && anyNegativeWait(b.Limits) {
		err = errors.New("has a negative wait")
	}
	if err != nil {
		return nil, err
	}
	return statusesOf(b.Limits), nil
}

// Explanation is the answer to GET /v1/explain.
type Explanation struct {
	Entity   string           `json:"entity"`
	Resource string           `json:"resource"`
	Level    weir.Level       `json:"level,omitempty"`
	Limits   map[string]Limit `json:"limits"`
	Hidden   []LevelLimits    `json:"hidden,omitempty"`
	// OnUnavailable and OnUnavailableFrom are those of the request; a parent has none.
	OnUnavailable     weir.Policy       `json:"on_unavailable,omitempty"`
	OnUnavailableFrom weir.PolicySource `json:"on_unavailable_from,omitempty"`
	Parent            *Explanation      `json:"parent,omitempty"`
	// Costs and LeftOut are absent unless the question names costs.
	Costs   weir.Costs `json:"costs,omitzero"`
	LeftOut []string   `json:"left_out,omitempty"`
}

// LevelLimits has the limits of a level that a stronger level hides.
type LevelLimits struct {
	Level  weir.Level       `json:"level"`
	Limits map[string]Limit `json:"limits"`
}

// ExplanationOf returns an explanation, with those of the ancestors.
func ExplanationOf(e *weir.Explanation) *Explanation {
	if e == nil {
		return nil
	}
	b := &Explanation{
		Entity: e.Entity, Resource: e.Resource, Level: e.Level,
		Limits: LimitsOf(e.Limits), Parent: ExplanationOf(e.Parent),
		OnUnavailable: e.OnUnavailable, OnUnavailableFrom: e.OnUnavailableFrom,
		Costs: e.Costs, LeftOut: e.LeftOut,
	}
	for _, h := range e.Hidden {
		b.Hidden = append(b.Hidden, LevelLimits{h.Level, LimitsOf(h.Limits)})
	}
	return b
}

// ReadExplanation reads an [Explanation].
func ReadExplanation(body []byte) (*weir.Explanation, error) {
	b, err := Read[Explanation](body)
	if err != nil {
		return nil, err
	}
	return b.explanation()
}

func (b *Explanation) explanation() (*weir.Explanation, error) {
	if b.Entity == "" || b.Resource == "" {
		return nil, errors.New("is incomplete")
	}
	e := &weir.Explanation{
		Entity: b.Entity, Resource: b.Resource, Level: b.Level,
		OnUnavailable: b.OnUnavailable, OnUnavailableFrom: b.OnUnavailableFrom,
		Costs: b.Costs, LeftOut: b.LeftOut,
	}
	var err error
	if e.Limits, err = ReadLimits(b.Limits); err != nil {
		return nil, err
	}
	for _, h := range b.Hidden {
		limits, err := ReadLimits(h.Limits)
		if err != nil {
			return nil, err
		}
		e.Hidden = append(e.Hidden, weir.LevelLimits{Level: h.Level, Limits: limits})
	}
	if b.Parent != nil {
		e.Parent, err = b.Parent.explanation()
	}
	return e, err
}

// CeilUnits returns a wait in whole units, rounded up so that a caller that waits for this time is
// not too early.
func CeilUnits(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	n := int64(d / unit)
	if d%unit != 0 && n < math.MaxInt64 {
		n++
	}
	return n
}

// milliseconds returns ms as a duration, at most the longest one.
func milliseconds(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
