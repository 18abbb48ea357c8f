// Package kernel implements the four kinds of limit as counters: pure state and arithmetic, without
// locks, I/O or a clock. A store that keeps its state in a process or in rows loads a counter,
// calls it, and writes it back. How the state is kept, locked and shared is left to the store. The
// rules are those of docs/semantics.md; this page says how they are computed.
//
// # Common to all kinds
//
// Amounts are whole units, instants are Unix milliseconds, and both are int64. Every call takes the
// time as an argument. A counter remembers the latest instant it has seen and treats an earlier one
// as that instant, so a clock that goes back cannot move its state back.
//
// A [Definition] is a limit without its name: its capacity and how units return. A counter uses one
// definition until [Counter.Redefine] gives it another. What is in use then stays in use: a bucket
// keeps its balance, except that a lowered capacity trims it, and occupied units keep their ends.
//
// A request of n units fits if at least n are available. Available may be negative, because an
// update is never denied. A ceiling below the capacity, which a request may bring, counts as if the
// difference were in use. [Judge] computes both answers that a store needs: whether a request fits,
// and if not, when it will.
//
// A lease stands for a number of units on each limit. [Counter.Take] returns a [Piece] that says
// where the units are; the store keeps the pieces with the lease and passes them to
// [Counter.Apply], which adjusts, completes or cancels the lease: it changes the number of units
// that the lease stands for to another one, which is 0 to give everything back.
//
// A counter that has had nothing in use for [ForgetMS], and was not asked in that time, is
// forgotten: it answers as a new counter would, and a store may delete it. Asking for what is
// available, and a denied request, leave it forgotten. See [Counter.Idle].
//
// # Bucket
//
// A [Bucket] has a balance in milli-units, the instant up to which it was refilled, and the [Rate]
// at which it refills. From the epoch to an instant t, a rate of r milli-units per p milliseconds
// has credited ⌊t·r/p⌋ milli-units, and an interval gains the difference between its ends. These
// gains telescope: a balance that is refilled in many small steps gains as much as one that is
// refilled once, however slow the limit is, and no interval gains a whole milli-unit too much or
// too little. A refill or a refund never raises the balance above the capacity. The balance may be
// negative; the refill repays this debt. A bucket does not distinguish its units, so a lease has no
// pieces of it.
//
// # Window
//
// In a [Window] each unit is occupied for a fixed length of time and then returns. A window is a
// queue of instants with the units that return at each ([Queue]); what is available is the capacity
// less the units that are occupied. A lease that shrinks gives back what it added last; the units
// that it keeps return when they would have. A lease that grows occupies more units, beyond the
// capacity if necessary, until its first units return or, if they have returned, for the length
// from now.
//
// # Concurrency
//
// A [Concurrency] counts slots. They are occupied like the units of a window, but usually the
// update that ends the lease returns them early. The length is the timeout after which a slot
// returns if its lease is not extended. [Concurrency.Extend] renews the slots of a lease that have
// not timed out.
//
// # Budget
//
// A [Budget] counts what was used in a period of a [Calendar]: from the first instant of an hour,
// day, week or month in a time zone to the first instant of the next. A unit belongs to the period
// in which its lease was reserved, and later updates of the lease count in that period. A period
// that has ended no longer counts. After a change of the calendar the period of the old calendar
// counts together with that of the new one until it ends.
//
// # Overflow
//
// Sums are checked before the numbers of a caller enter a counter: [Counter.CanCount] reports
// whether a counter can hold an increase. It must be called before an Apply that increases what a
// lease stands for, and before a Take that does not fit, as of a shadow limit. Products have 128
// bits. A result that does not fit an int64 is the largest int64, which also stands for "never".
package kernel
