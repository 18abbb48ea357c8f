package replay

// The numbers with at most two significant digits are counted from 1: 1 to 99 are the first, then
// come 100, 110 and so on. A search among them takes few steps, and what it finds can be read.

// lastRound is the largest of them that 64 bits hold: 9.2 · 10¹⁸.
const lastRound = 10 + 17*90 + 82

// roundNumber returns the number with that count, from 1 to lastRound.
func roundNumber(i int) int64 {
	if i < 10 {
		return int64(i)
	}
	n := int64(10 + (i-10)%90)
	for range (i - 10) / 90 {
		n *= 10
	}
	return n
}

// roundUp counts the smallest such number that is at least n, or returns one more than lastRound.
func roundUp(n int64) int {
	if n > roundNumber(lastRound) {
		return lastRound + 1
	}
	if n < 10 {
		return int(max(n, 1))
	}
	tens := 0
	for n > 99 {
		up := n%10 > 0
		n, tens = n/10, tens+1
		if up {
			n++
		}
	}
	return 10 + 90*tens + int(n-10)
}
