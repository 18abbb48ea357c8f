// Package estimator learns how many tokens the next call will generate, so that it reserves about
// that many instead of the most it may.
//
// An [Estimator] answers for a [Key], an entity and a model. It looks at the latest calls of that
// key, puts them in order of size, and takes the one of rank ⌈(n+1)·share⌉, n being how many they
// are. Where n is too small for such a rank, it looks at the latest calls of the model, then at
// those of all together, and says [Options.First] when even these are too few: a share of 95 %
// needs 19 calls, one of 99 % needs 99.
//
// # What it promises
//
// If the next call is one like those it is compared with (in statistics: exchangeable with them),
// it stays within the estimate with at least the probability asked for, whatever the distribution
// is and however few calls there were. This is the one-sided form of split conformal prediction;
// see Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World (2005), and Angelopoulos
// and Bates, A Gentle Introduction to Conformal Prediction (arXiv 2107.07511). An estimate by the
// model or by all calls keeps the promise for these calls together, not for each entity among them.
//
// Traffic drifts, and then nothing is promised. What helps is that only the latest calls count
// ([Options.Window]): after as many calls the old traffic is forgotten to the last one. While the
// calls keep getting larger, the estimate runs after them and covers a few percent less.
//
// Only what was learned counts. Long calls end late, so at the start, and after a change, the first
// calls to be learned are the short ones. A call whose use is unknown should not be learned.
//
// # Figures
//
// Numbers of tokens are kept in buckets, one for each number up to 31 and 16 for each power of two
// above, and an estimate is the largest number of its bucket: at most a sixteenth more than the
// call it comes from. There is no floating-point number anywhere, so the same calls in the same
// order give the same estimates on every machine.
//
// Memory is bounded by [Options.Keys] and [Options.Models], with 2·(960 + Window) bytes for each
// of them. Whoever invents keys pushes out only others that are as new: three quarters of the room
// are kept for keys with enough calls for an estimate of their own.
package estimator
