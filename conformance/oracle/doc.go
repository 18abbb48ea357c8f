// Package oracle judges the decision log of `weir replay` without weir: it reads the log alone,
// keeps its own books by the semantics that weir promises, and says where it disagrees. It shares no
// code with the library and prefers what is plainly right to what is fast: lists are scanned,
// balances are big integers, a retry-after is searched for and a calendar period is walked.
//
// After a disagreement the books follow the log, so that one wrong decision is reported once and
// not again on every later line: what the log admitted is charged, what it denied is not.
//
// Where the promise is silent, the oracle reads it so:
//
//   - A concurrency limit that no charge of a request names costs 1 for the whole request, also
//     where several charges reach it; that slot counts as asked by the first of them.
//   - A charge whose entity and ancestors have no limit at all is refused with "no limits
//     configured", even if another charge has some. A name is unknown if nobody in the chain of its
//     own charge has it. Where several errors apply, any of them will do.
//   - A shadow limit is never the reason for "never satisfiable"; asked for more than it can hold,
//     it is exceeded and has no retry-after (0). Its retry-after is judged before the charge.
//   - A subject that the log does not define is refused with any error: a parent may be missing.
//   - What ends at an instant is gone at that instant: a window, a hold, a lease.
//   - A hold that has run out is not taken back by an extend: another may have the slot. Naming its
//     slots in an adjust or complete is no error, so that a long call can settle the rest.
//   - A lease lives as long as the longest timeout of the slots it took, even if they went early.
//   - Units that an adjust adds on a window end with the window of the reservation, also where the
//     reservation asked nothing of that limit.
//   - A settlement repeated with the same content is the same text, charge by charge.
//   - Once ten minutes have passed since a lease ended, a verb may get the answer it would have got
//     before or any error; a reservation is refused with any error.
//   - Where local clocks go back over midnight, the later date has begun and stays begun. An hour
//     begins when the local hour changes or the local clock goes back. Periods begin on whole
//     minutes, as they have in every zone since 1972.
//
// A lease ID that was denied is judged anew. Identifiers, lease IDs by their time (the horizon),
// the memory of a million ended leases and state beyond int64 are not judged.
package oracle
