// Package kernel counts what limits allow: the four kinds of limit as counters in memory, without
// locks, without I/O and without a clock. A store that keeps its state in a process or in rows
// loads a counter, asks it, changes it and writes it back; how the state is kept, locked and shared
// is the store's business. The rules are those of docs/semantics.md; this page says how they are
// counted.
//
// # Common to all kinds
//
// Amounts are whole units, instants are Unix milliseconds, and both are int64. Time is an argument
// of every call. A counter remembers the latest instant it has seen and treats an earlier one as
// that, so no clock can move its state backwards.
//
// A [Definition] is a limit without its name: its capacity and how units come back. A counter goes
// by one definition until [Counter.Redefine] gives it another. What is in use then stays in use: a
// bucket keeps its balance, units keep their ends, and only the balance of a bucket is trimmed to a
// lowered capacity.
//
// A request of n units fits if n are available. Available may be below zero: settlements are never
// denied. A ceiling below the capacity, which a request may bring, counts as if the difference were
// in use. [Judge] answers both questions of a store: does it fit, and if not, when would it?
//
// A lease stands for a number of units on each limit. The counter says in pieces where they are,
// the store keeps the pieces with the lease and hands them back when the lease changes. To adjust,
// complete or cancel a lease is one operation, Apply: from the number of units it stood for, to
// another one; 0 gives all of them back.
//
// A counter with nothing in use for [ForgetMS], and which nobody has asked in that time, counts as
// forgotten: it answers as a new one would, and a store may delete it. A denied request leaves it
// forgotten. See [Counter.Idle].
//
// # Bucket
//
// A [Bucket] has a balance in milli-units, the instant up to which it was refilled, and the [Rate]
// that it refills at. By an instant t a rate of r milli-units per p milliseconds has credited
// ⌊t·r/p⌋ milli-units, and an interval gains the difference between its ends. Gains telescope: a
// balance that is brought up to date often gains as much as one that is left alone, however slow
// its limit is, and no interval is credited a whole milli-unit too much or too little. The balance
// never exceeds the capacity, neither by a refill nor by a refund. It may be negative; that debt is
// repaid by the refill. A bucket does not tell its units apart, so a lease has no pieces of it.
//
// # Window
//
// In a [Window] each unit is occupied for a fixed length and then returns by itself. A window is a
// queue of instants with the units that return at each ([Queue]); capacity less what is occupied is
// available. A lease that shrinks gives back what it added last, and what it keeps returns when it
// would have. A lease that grows occupies more units, in excess of the capacity if need be: until
// its first units return or, if they have, for the length from now on.
//
// # Concurrency
//
// A [Concurrency] counts slots. They are held like the units of a window, but usually returned
// early, by the settlement that ends the lease. The length is only the timeout after which a slot
// returns if nobody renewed it. Extend renews the slots of a lease that have not timed out.
//
// # Budget
//
// A [Budget] counts what was used in a period of a [Calendar]: from the first instant of an hour,
// day, week or month in some zone to the first of the next. A unit belongs to the period in which
// its lease was reserved, and is settled there. Once a period has ended it does not count. After a
// change of the calendar the old period counts beside the new one until it ends.
//
// # Overflow
//
// Sums are checked where a caller's numbers enter: [Counter.CanCount] reports whether a counter can
// hold a growth, and must be asked before an Apply that grows a lease and before a Take that does
// not fit (that of a limit which never denies). Products have 128 bits. A result that does not fit
// is the largest int64, which also stands for "never".
package kernel
