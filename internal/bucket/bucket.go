// Package bucket forwards to package kernel. It stays until every store imports the kernel.
package bucket

import (
	"time"

	"github.com/weir-limiter/weir/kernel"
)

// Rate is [kernel.Rate].
type Rate = kernel.Rate

// RateOf is [kernel.RateOf].
func RateOf(capacity, refill int64, period time.Duration) Rate {
	return kernel.RateOf(capacity, refill, period)
}

// Milli is [kernel.Milli].
func Milli(units int64) (int64, bool) { return kernel.Milli(units) }

// Units is [kernel.Units].
func Units(milli int64) int64 { return kernel.Units(milli) }

// Duration is [kernel.Duration].
func Duration(ms int64) time.Duration { return kernel.Duration(ms) }
