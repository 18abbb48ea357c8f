package oracle_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// edit turns a line of a right log into what a mistaken implementation would have written.
type edit func(line string) string

func replace(pattern, by string) edit {
	return func(line string) string { return regexp.MustCompile(pattern).ReplaceAllString(line, by) }
}

func available(n int) edit { return replace(`"available":-?\d+`, fmt.Sprintf(`"available":%d`, n)) }

func retry(ms int64) edit {
	return replace(`"retry_after_ms":\d+`, fmt.Sprintf(`"retry_after_ms":%d`, ms))
}

func admitted(line string) string {
	line = replace(`"allowed":false`, `"allowed":true`)(line)
	return retry(0)(replace(`"exceeded":true`, `"exceeded":false`)(line))
}

func denied(line string) string {
	line = replace(`"allowed":true`, `"allowed":false,"retry_after_ms":0`)(line)
	return retry(1000)(replace(`"exceeded":false`, `"exceeded":true`)(line))
}

// succeeds makes a verb that is refused go through, and fails the other way round.
func succeeds(line string) string { return replace(`,"error":"[^"]*"`, ``)(line) }

func fails(text string) edit { return replace(`}$`, fmt.Sprintf(`,"error":%q}`, text)) }

// errs turns a decision into an error, and decides an error into a decision.
func errs(text string) edit { return replace(`"allowed".*$`, fmt.Sprintf(`"error":%q}`, text)) }

func decides(allowed bool) edit {
	return replace(`"error".*$`, fmt.Sprintf(`"allowed":%t,"limits":[]}`, allowed))
}

// wrong is one mistake: the line of the right log it shows on first, and what it is about.
type wrong struct {
	mistake string
	line    int
	about   string
	edits   []edit
}

func TestMistakesAreCaught(t *testing.T) {
	t.Parallel()
	logs := rightLogs(t)
	for name, mistakes := range mistakes() {
		for _, m := range mistakes {
			t.Run(name+" "+m.mistake, func(t *testing.T) {
				t.Parallel()
				lines := strings.Split(strings.TrimSpace(logs[name]), "\n")
				right := lines[m.line-1]
				for _, edit := range m.edits {
					lines[m.line-1] = edit(lines[m.line-1])
				}
				if lines[m.line-1] == right {
					t.Fatalf("the edits change nothing: %s", right)
				}
				caught(t, strings.Join(lines, "\n"), m.line, m.about)
			})
		}
	}
}

func mistakes() map[string][]wrong {
	all := kindMistakes()
	all["budget"], all["hour"], all["day"], all["week"], all["utc"] = budgetMistakes(),
		[]wrong{
			{"a repeated hour counts once", 6, "retry-after", []edit{retry(5400_000)}},
			{"the second of two hours is not new", 7, "decision", []edit{denied}},
		},
		[]wrong{{"the long day has 24 hours", 4, "retry-after", []edit{retry(86400_000)}}},
		[]wrong{
			{"the short Sunday has 24 hours", 4, "retry-after", []edit{retry(212400_000)}},
			{"the week begins on Sunday", 4, "retry-after", []edit{retry(126000_000)}},
		},
		[]wrong{{"February has 28 days", 4, "decision", []edit{available(9), admitted}}}
	all["cascade"], all["shadow"] = cascadeMistakes(), shadowMistakes()
	all["lease"] = leaseMistakes()
	return all
}

func kindMistakes() map[string][]wrong {
	return map[string][]wrong{
		"bucket": {
			{"available off by one", 3, "available", []edit{available(7)}},
			{"a retry-after a millisecond early", 4, "retry-after", []edit{retry(5993)}},
			{"a retry-after a millisecond late", 4, "retry-after", []edit{retry(5995)}},
			{"the milli-unit begun is lost", 4, "retry-after", []edit{retry(5996)}},
			{"admitted over capacity", 5, "decision", []edit{admitted}},
			{"denied though it fits", 6, "decision", []edit{available(7), denied}},
			{"overrun forgotten", 8, "decision", []edit{available(0), admitted}},
			{"nothing costs nothing in debt", 8, "decision", []edit{admitted}},
			{"debt rounded up", 9, "available", []edit{available(-4)}},
			{"debt not in the retry-after", 10, "retry-after", []edit{retry(60_000)}},
			{"refund above capacity", 13, "available", []edit{available(4)}},
			{"an adjust gives nothing back", 15, "decision", []edit{denied}},
			{"more than capacity is only denied", 16, "decision", []edit{decides(false)}},
			{"more than capacity is admitted", 16, "decision", []edit{decides(true)}},
			{"never satisfiable in place of a denial", 10, "decision",
				[]edit{errs("never satisfiable")}},
			{"unknown is taken for 0", 18, "decision", []edit{available(6), admitted}},
		},
		"window": {
			{"the whole window, not its first end", 5, "retry-after", []edit{retry(60_000)}},
			{"the first end though it frees too little", 6, "retry-after", []edit{retry(58_000)}},
			{"overrun forgotten", 8, "decision", []edit{available(0), admitted}},
			{"overrun not in the retry-after", 10, "retry-after", []edit{retry(57_000)}},
			{"a settlement gives nothing back", 12, "decision", []edit{available(-3), denied}},
			{"a shrink ends early", 13, "decision", []edit{admitted}},
			{"the window ends a millisecond early", 14, "decision", []edit{admitted}},
			{"the window ends a millisecond late", 15, "decision", []edit{denied, retry(1)}},
			{"units learned of late are forgotten", 19, "available", []edit{available(1)}},
			{"units learned of in time start anew", 19, "decision", []edit{available(3), denied}},
			{"a shrink takes what was added first", 21, "retry-after", []edit{retry(60_000)}},
			{"a replay is applied", 25, "available", []edit{available(-92)}},
			{"a lower number is applied", 25, "available", []edit{available(-42)}},
			{"cancel gives nothing back", 27, "decision", []edit{denied}},
		},
		"concurrency": {
			{"a slot not named is not taken", 3, "parallel",
				[]edit{replace(`"limits":\[\{[^}]*\},`, `"limits":[`)}},
			{"slots count 1", 4, "available", []edit{replace(`"available":0`, `"available":1`)}},
			{"extend renews nothing", 7, "retry-after", []edit{retry(7000)}},
			{"an adjust returns no slot", 9, "decision", []edit{denied}},
			{"an adjust takes more slots", 10, "adjust", []edit{succeeds}},
			{"the slot is not returned", 12, "decision", []edit{denied}},
			{"the timeout is forgotten", 14, "decision", []edit{denied}},
			{"extend takes back what ran out", 16, "available", []edit{available(-1)}},
			{"more slots than there were are settled", 18, "complete", []edit{succeeds}},
			{"slots that ran out cannot be settled", 19, "complete", []edit{fails("not held")}},
		},
	}
}

func budgetMistakes() []wrong {
	return []wrong{
		{"the month ends in UTC", 4, "retry-after", []edit{retry(5400_000)}},
		{"the month has 30 days", 4, "decision", []edit{available(70), admitted}},
		{"admitted over capacity", 5, "decision", []edit{admitted}},
		{"the new month is late", 6, "decision", []edit{available(20), denied}},
		{"overrun charged to the new period", 8, "decision", []edit{available(30), denied}},
		{"overrun forgotten", 10, "decision", []edit{available(0), admitted}},
		{"a month of 31 days", 10, "retry-after", []edit{retry(31 * 86400_000)}},
		{"cancel gives nothing back", 13, "decision", []edit{available(-20), denied}},
		{"more than capacity is only denied", 14, "decision", []edit{decides(false)}},
	}
}

func cascadeMistakes() []wrong {
	return []wrong{
		{"the parent is not charged", 6, "acme/llm tpm",
			[]edit{replace(`,\{"entity":"acme".*$`, `]}`)}},
		{"the parent does not deny", 7, "decision", []edit{admitted}},
		{"a denial charged the child", 8, "u/llm tpm: available",
			[]edit{replace(`"available":5`, `"available":0`)}},
		{"a name that only the child has is unknown", 9, "decision",
			[]edit{errs("unknown limit")}},
		{"the slot of the parent is forgotten", 9, "decision", []edit{admitted}},
		{"each charge takes a slot", 11, "acme/llm parallel: requested",
			[]edit{replace(`("limit":"parallel".*?"requested"):1`, `$1:2`)}},
		{"charges are not added on the parent", 14, "acme/llm tpm: requested",
			[]edit{replace(`"available":2,"requested":3`, `"available":3,"requested":2`)}},
		{"equal charges are not added", 16, "decision",
			[]edit{replace(`"requested":4`, `"requested":3`), admitted}},
		{"an adjust misses the parent", 17, "acme/llm tpm: available",
			[]edit{replace(`"available":5`, `"available":4`)}},
		{"an unknown limit is skipped", 18, "decision", []edit{decides(true)}},
		{"no limits admit", 19, "decision", []edit{decides(true)}},
		{"never satisfiable is only denied", 20, "decision", []edit{decides(false)}},
		{"the sum on the parent is not seen", 21, "decision", []edit{decides(false)}},
		{"a negative cost is admitted", 22, "decision", []edit{decides(true)}},
	}
}

func shadowMistakes() []wrong {
	return []wrong{
		{"shadow denies", 4, "decision", []edit{
			replace(`"allowed":true`, `"allowed":false,"retry_after_ms":4000`)}},
		{"shadow is not exceeded", 4, "exceeded", []edit{admitted}},
		{"shadow is not charged", 5, "available", []edit{replace(`"available":-3`, `"available":3`)}},
		{"shadow is not reported", 5, "tpm", []edit{replace(`"limits":\[\{[^}]*\},`, `"limits":[`)}},
		{"shadow in the retry-after", 6, "retry-after", []edit{
			replace(`"allowed":false,"retry_after_ms":59000`, `"allowed":false,"retry_after_ms":4000`)}},
		{"shadow is never satisfiable", 7, "decision", []edit{errs("never satisfiable")}},
	}
}

func leaseMistakes() []wrong {
	return []wrong{
		{"a retried reservation is charged twice", 5, "available", []edit{available(80)}},
		{"other content is taken for the same", 6, "decision", []edit{decides(true)}},
		{"a live lease has ended", 12, "complete", []edit{fails("ended")}},
		{"a retried complete conflicts", 13, "complete", []edit{fails("conflict")}},
		{"other actuals go through", 14, "complete", []edit{succeeds}},
		{"cancel after complete goes through", 15, "cancel", []edit{succeeds}},
		{"adjust after complete goes through", 16, "adjust", []edit{succeeds}},
		{"adjust after complete conflicts", 16, "adjust", []edit{succeeds, fails("conflict")}},
		{"extend after complete goes through", 17, "extend", []edit{succeeds}},
		{"a completed lease is reserved again", 18, "decision", []edit{decides(true)}},
		{"a retried cancel has ended", 20, "cancel", []edit{fails("ended")}},
		{"complete after cancel goes through", 21, "complete", []edit{succeeds}},
		{"an unknown lease is settled", 23, "cancel", []edit{succeeds}},
		{"cancel and complete both give back", 24, "available", []edit{available(69)}},
		{"a lease lives over its hour", 27, "adjust", []edit{succeeds}},
		{"an expired lease is settled", 28, "complete", []edit{succeeds}},
		{"an expired lease conflicts", 29, "cancel", []edit{succeeds, fails("conflict")}},
		{"extend renews no lease", 30, "adjust", []edit{fails("ended")}},
		{"an expired lease gives back", 31, "available", []edit{available(69)}},
		{"a forgotten lease is settled", 32, "complete", []edit{succeeds}},
		{"a forgotten lease is charged twice", 33, "decision", []edit{decides(true)}},
		{"a lease ends before its hold", 36, "extend", []edit{fails("ended")}},
		{"an extend is for two hours", 37, "complete", []edit{succeeds}},
		{"an extend is shorter than the hold", 38, "complete", []edit{fails("ended")}},
	}
}
