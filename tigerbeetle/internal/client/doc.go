// Package client is the store's connection to a TigerBeetle cluster: TigerBeetle's own client,
// with what that lacks. A call ends with its context, while what it asked for may still be carried
// out. Calls that are still in flight after that are counted, and their number is bounded. A
// client that the cluster has shut out is replaced by a new one. How many events a call may have
// is found out when the session begins, and errors say what to do about them.
//
// Like TigerBeetle's client, it is built with cgo only.
package client
