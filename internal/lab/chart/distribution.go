package chart

// Distribution is a figure of how often values of a size occur: how long calls waited, estimates
// beside the truth. The series stand side by side.
type Distribution struct {
	Title string
	// Note is a sentence below the title. Default: none
	Note string
	// Unit is what the bounds are in, as "tokens", or [Milliseconds]. Default: none
	Unit string
	// Bounds are the ends of the bins, ascending: a bin has the values that are above the one before
	// and not above its own.
	Bounds []int64
	// Series count the values in each bin. One more value than there are bounds is for what is above
	// all of them.
	Series []Series
}

// bins is how many bins there are to draw.
func (d *Distribution) bins() int { return max(len(d.Bounds), most(d.Series)) }

// binLabel names a bin by its end.
func (d *Distribution) binLabel(i int) string {
	if i < len(d.Bounds) {
		return plain(d.Bounds[i], d.Unit)
	}
	return "more"
}

// binNames names all bins in words.
func (d *Distribution) binNames() []string {
	out := make([]string, d.bins())
	for i := range out {
		switch {
		case i < len(d.Bounds) && (i > 0 || d.Bounds[i] != 0):
			out[i] = "up to " + exact(d.Bounds[i], d.Unit)
		case i < len(d.Bounds):
			out[i] = exact(0, d.Unit)
		case len(d.Bounds) > 0:
			out[i] = "above " + exact(d.Bounds[len(d.Bounds)-1], d.Unit)
		default:
			out[i] = "all"
		}
	}
	return out
}
