// Package lint holds the house rules that no linter knows, as ordinary tests: who may import whom,
// how long things may be, what must be documented, where the clock is read. Each rule prints its
// figures under go test -v, and each is run on small samples too, so that none can rot unnoticed.
//
// To change a rule, change its table or its constant here; the rule's comment says what it is for.
package lint
