// Package uint128 computes with the 128-bit amounts of TigerBeetle, whose client has a type for
// them and no arithmetic. It is built with cgo only, as that client is.
package uint128
