// Package livetest has Go processes with weir and Python processes with zae-limiter 0.17 use one
// table at the same time, and checks from what each of them was told that both kept the limits.
//
// A [Spec] says what one process offers; testdata/worker.py and [Process] do the same with it. Each
// writes a log of [Record] lines. What is checked is told from the logs and the items alone:
// [Histories] are what the limits must stand for, [History.Check] looks at every interval of
// time, and [History.Account] adds up balances.
package livetest
