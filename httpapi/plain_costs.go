package httpapi

import "github.com/weir-limiter/weir"

// maxPlainCosts is how many costs an object in plain form may have: what fits a small map.
const maxPlainCosts = 8

// plainCosts are amounts by name as they stand in a document, in its own bytes.
type plainCosts struct {
	given   bool
	n       int
	names   [maxPlainCosts][]byte
	amounts [maxPlainCosts]int64
}

// read reads the object, which must not have been read before.
func (c *plainCosts) read(s *plainScan) bool {
	if c.given {
		return false
	}
	c.given = true
	return s.object(func(name []byte) bool {
		if c.n == maxPlainCosts || c.has(name) {
			return false
		}
		n, ok := s.integer()
		c.names[c.n], c.amounts[c.n] = name, n
		c.n++
		return ok
	})
}

func (c *plainCosts) has(name []byte) bool {
	for _, other := range c.names[:c.n] {
		if string(other) == string(name) {
			return true
		}
	}
	return false
}

// length is how many bytes the names have.
func (c *plainCosts) length() int {
	n := 0
	for _, name := range c.names[:c.n] {
		n += len(name)
	}
	return n
}

// costs makes a map of them, with names that are kept together; nil where the object was not there.
func (c *plainCosts) costs(k *keptText) weir.Costs {
	if !c.given {
		return nil
	}
	costs := make(weir.Costs, c.n)
	for i, name := range c.names[:c.n] {
		costs[k.keep(name)] = c.amounts[i]
	}
	return costs
}
