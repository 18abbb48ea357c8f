// Package uint128 does arithmetic on the 128-bit amounts of TigerBeetle, whose client has a type
// for them but no arithmetic. Like that client, it is built with cgo only.
package uint128
