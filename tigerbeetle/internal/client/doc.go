// Package client is the store's connection to a TigerBeetle cluster. It wraps TigerBeetle's own
// client and adds what that lacks:
//
//   - A call ends with its context. The cluster may still carry it out, because the native client
//     cannot take a call back. [IsUnsent] reports whether a failed call was never given to it.
//   - Calls that are still in flight after their callers have left are counted, and their number is
//     bounded.
//   - A native client that the cluster has shut out is replaced, by one goroutine at a time.
//   - The number of events that a call may have is determined when the session begins.
//   - Errors say what to do about them.
//
// A mutex guards which native client is in use. It is not held during a call.
//
// Like TigerBeetle's client, the package is built with cgo only.
package client
