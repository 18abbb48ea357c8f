package replay

import "math/big"

// admissions remembers which calls were admitted: one bit for each, so that ten million take 1.25
// MB. It is a watcher.
type admissions []uint64

func newAdmissions(calls int) admissions { return make(admissions, (calls+63)/64) }

// Reserved notes an attempt that was admitted. A call has at most one.
func (s admissions) Reserved(a *Attempt, v *Verdict) error {
	if v.Admitted() {
		s[a.seq/64] |= 1 << (a.seq % 64)
	}
	return nil
}

// Completed has nothing to note.
func (s admissions) Completed(*Attempt) error { return nil }

// has reports whether a call was admitted.
func (s admissions) has(seq int) bool { return s[seq/64]>>(seq%64)&1 == 1 }

// compareCalls counts the calls that both, one or none of two replays admitted.
func compareCalls(calls []Call, admitted [2]admissions) CallsCompared {
	var c CallsCompared
	places := [2][2]*CallCount{{&c.Neither, &c.OnlySecond}, {&c.OnlyFirst, &c.Both}}
	for _, row := range places {
		for _, count := range row {
			count.Tokens = new(big.Int)
		}
	}
	var scratch big.Int
	for i := range calls {
		count := places[fromBool(admitted[0].has(i))][fromBool(admitted[1].has(i))]
		count.Calls++
		count.Tokens.Add(count.Tokens, scratch.SetInt64(calls[i].Tokens()))
	}
	for _, row := range places {
		for _, count := range row {
			count.Percent = percent(big.NewInt(count.Calls), big.NewInt(int64(len(calls))))
		}
	}
	return c
}
