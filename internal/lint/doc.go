// Package lint checks the rules of this repository that no linter knows, as ordinary tests: which
// package may import which, how long files and functions may be, what must be documented, where the
// clock is read. It has no production code.
//
// TestRepository loads all text files once, as a repo, and runs each rule on it. A rule's check
// function returns one line of figures, which go test -v prints, and a line for each breach. Each
// rule is also run on its samples, which are tiny repositories with one fault or none, so that a
// rule that no longer finds anything fails a test.
//
// To change a rule, change its table or its constant here; the rule's comment says what it is for.
package lint
