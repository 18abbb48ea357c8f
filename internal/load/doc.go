// Package load drives a [weir.Service] with calls and measures how it answers.
//
// A call reserves, thinks, and settles. In a closed loop each of so many callers makes one call
// after the other, so a slow service is asked less. In an open loop calls begin at planned
// instants, whatever became of those before, and latencies count from there: a service that stands
// still for a second is seen to keep everybody waiting who came within it, not only the one who was
// being served.
package load
