package model

// Right returns the right rules, for wrong ones to be made of. The calendar may be shared.
func Right(c *Calendar) *Rules {
	r := &Rules{}
	r.fill(c)
	return r
}
