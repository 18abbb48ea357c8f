// Package livetest runs Go processes with weir and Python processes with zae-limiter 0.17 on one
// table at the same time, and checks from their logs that both kept the limits.
//
// A [Spec] says which calls one process makes. testdata/worker.py runs it in Python and [Process]
// in Go. Each process writes a [Log] of [Record] lines: its calls with their answers, its changes
// of the configuration, and its writes of bucket items, which [Watch] reads from the requests.
//
// The checks use only the logs and the final bucket items. [Histories] sorts the records by entity
// and limit. The clock of a process is read before and after each call, so an effect is known to
// lie between two instants. [History.Check] looks at every interval of time that ends with an
// admission, and counts each effect so that a correct history never fails. [History.Account] adds
// up the balances of the items, which is exact.
//
// In an outage the processes are `weir serve`, and the callers of the test reach them through a
// proxy that cuts, delays and repeats requests. The servers are killed under load. Requests that
// were under way then may leave units charged; the proxy knows them, because they have no answer.
package livetest
