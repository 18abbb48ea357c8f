// Package replay plays recorded traffic against limits and says what became of it.
//
// [ReadTrace] reads a trace, [NewWorkload] says who makes its calls and what they cost. [Run]
// replays that in virtual time against a limiter of its own, as often as it is asked to and each
// time with other limits if need be; [Play] sends it in real time to a service that runs. Both
// return a [Report], which is data: printing it is for whoever asked.
package replay
