// Package estimator learns how many tokens the next call to a model will generate, so that a
// reservation asks for about that many instead of the largest number possible.
//
// An [Estimator] answers for a [Key], an entity and a model. It sorts the latest calls of the key
// by size and returns the one of rank ⌈(n+1)·share⌉, where n is the number of calls. If n is too
// small for such a rank, it uses the latest calls of the model, then those of all models, and
// returns [Options.First] if even these are too few. A share of 95 % needs 19 calls, one of 99 %
// needs 99.
//
// # What it promises
//
// If the next call is exchangeable, in the sense of statistics, with the calls it is compared with,
// then it stays within the estimate with at least the probability asked for, whatever the
// distribution is and however few calls there were. This is the one-sided form of split conformal
// prediction; see Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World (2005), and
// Angelopoulos and Bates, A Gentle Introduction to Conformal Prediction (arXiv 2107.07511). An
// estimate by the model or by all calls keeps the promise for these calls together, not for each
// entity among them.
//
// If the traffic changes, nothing is promised. Only the latest calls count ([Options.Window]), so
// after that many calls the old traffic is forgotten completely. While the calls keep getting
// larger, the estimates lag behind and cover a few percent less.
//
// Only calls that have been learned count. Long calls end late, so at the start, and after a
// change, the first calls to be learned are short ones. Do not learn a call whose use is unknown.
//
// # Figures
//
// Numbers of tokens are kept in bins: one for each number up to 31, and 16 for each power of two
// above. An estimate is the largest number of its bin, which is at most a sixteenth more than the
// call that it comes from. There is no floating-point arithmetic, so the same calls in the same
// order give the same estimates on every machine.
//
// # Memory
//
// Memory is bounded by [Options.Keys] and [Options.Models], with 2·(960 + Window) bytes for each
// of them. A caller that invents keys displaces only keys that are as new: three quarters of the
// room are kept for keys with enough calls for an estimate of their own.
//
// One mutex guards everything.
package estimator
