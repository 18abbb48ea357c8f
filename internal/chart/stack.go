package chart

// stack lays values on top of each other on a scale that is so high, and returns where each begins
// and the last ends. A value that is not 0 gets at least the least height, so that it is seen; what
// lies below gives way where there is no room above.
func stack(values []uint64, top uint64, height, least int) []int {
	edges := make([]int, len(values)+1)
	for i := range values {
		edges[i+1] = max(scale(sum(values[:i+1]), top, height), edges[i])
		if values[i] > 0 {
			edges[i+1] = max(edges[i+1], edges[i]+least)
		}
	}
	ceiling := height
	for i := len(values); i > 0; i-- {
		edges[i] = min(edges[i], ceiling)
		if ceiling = edges[i]; values[i-1] > 0 {
			ceiling = max(ceiling-least, 0)
		}
	}
	return edges
}

// stackWhole is stack in whole rows of so many steps each. The last may reach to the end of its
// row.
func stackWhole(values []uint64, top uint64, rows, row int) []int {
	whole := sum(values)
	used := (scale(whole, top, rows*row) + row - 1) / row
	if whole > 0 {
		used = max(used, 1)
	}
	edges := stack(values, whole, used, 1)
	for i := range edges {
		edges[i] *= row
	}
	return edges
}
