package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestContests has contests take place for a moment, in their processes: in a plain run the one that
// has a parent, with which all of it is met.
func TestContests(t *testing.T) {
	t.Parallel()
	arena := &localArena{python: testkit.ZAE(t).Command(t.Context(), "python").Path}
	server, err := testkit.StartDynamoDB(t.Context(), nil)
	if err != nil {
		testkit.Require(t, "dynamodb", err.Error())
	}
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s := &settings{runs: 1, length: 100 * time.Millisecond, warm: 64, heat: 16}
	s.profile = filepath.Join(t.TempDir(), "cpu.prof")
	for _, c := range contests() {
		if c.parent == "" && !soak.On() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for i := range c.callers {
				c.callers[i] = c.callers[i][:1]
			}
			r, err := runContest(ctx, arena, &c, s)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range c.figures {
				got := r.runs[0][i]
				if got.Admitted == 0 || got.Denied != 0 || got.NS <= 0 {
					t.Errorf("%s: got %+v, want calls that were all admitted", f.label, got)
				}
				counted := c.players[f.world].name != contestPython
				if counted != (got.Writes > 0) || counted && c.parent != "" && got.ParentWrites == 0 {
					t.Errorf("%s: got %+v, want its writes", f.label, got)
				}
			}
			if info, err := os.Stat(s.profile); err != nil || info.Size() == 0 {
				t.Errorf("got %+v, %v, want a profile of weir", info, err)
			}
			for _, x := range c.ratios {
				if got := r.ratios(&x); len(got) != s.runs || got[0] == 0 {
					t.Errorf("ratio %+v: got %v, want one for each of %d runs", x, got, s.runs)
				}
			}
		})
	}
}

// TestContestsAreFair shows that every position exists and that everybody has the same callers.
func TestContestsAreFair(t *testing.T) {
	t.Parallel()
	for _, c := range contests() {
		if len(c.callers) != contestCallers {
			t.Errorf("%s: got %d callers, want %d", c.name, len(c.callers), contestCallers)
		}
		used := make([]bool, len(c.players))
		for _, f := range c.figures {
			used[f.world] = true
			if f.work == orderBoth && c.players[f.world].name != contestWeir {
				t.Errorf("%s: %s: completes, which only weir does", c.name, f.label)
			}
		}
		for i, p := range c.players {
			if !used[i] || p.processes < 1 || p.processes > 1 && p.name != contestPython {
				t.Errorf("%s: got player %+v without a figure, or in too many processes", c.name, p)
			}
		}
		for _, x := range c.ratios {
			if x.over >= len(c.figures) || x.under >= len(c.figures) || !x.least {
				if x.goal != 0 {
					t.Errorf("%s: got ratio %+v of %d figures", c.name, x, len(c.figures))
				}
			}
		}
	}
}

func TestContestKeep(t *testing.T) {
	t.Parallel()
	c := childrenContest()
	if !c.keep(regexp.MustCompile("^weir, reserve$|SDK")) {
		t.Fatal("got nothing left")
	}
	if len(c.figures) != 2 || len(c.players) != 2 || c.players[c.figures[1].world].name != contestBare {
		t.Errorf("got %+v of %+v, want two figures of their players", c.figures, c.players)
	}
	if len(c.ratios) != 1 || c.ratios[0].over != 0 || c.ratios[0].under != 1 {
		t.Errorf("got ratios %+v, want the one between them", c.ratios)
	}
	if c.keep(regexp.MustCompile("nobody")) {
		t.Errorf("got %+v, want nothing left", c.figures)
	}
}

// scripted is a contestant in the test.
type scripted struct {
	counter requestCounter
	answer  func(call int64, entity string, complete bool) (bool, error)
	calls   atomic.Int64
}

func (s *scripted) call(_ context.Context, entity string, complete bool) (bool, error) {
	return s.answer(s.calls.Add(1), entity, complete)
}

func (s *scripted) counts() *requestCounter { return &s.counter }

func (s *scripted) close() error { return nil }

// TestOrders gives orders as the parent does, and reads the replies.
func TestOrders(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("broken")
	for _, c := range []struct {
		order    string
		answer   func(call int64, entity string, complete bool) (bool, error)
		admitted int64
		denied   int64
		fails    string
	}{
		{
			order:    "warm 10",
			answer:   func(n int64, _ string, _ bool) (bool, error) { return n%5 != 0, nil },
			admitted: 8, denied: 2,
		},
		{
			order:  "warm 10",
			answer: func(int64, string, bool) (bool, error) { return false, errBroken },
			fails:  "broken",
		},
		{
			order:  "both 0.001",
			answer: func(_ int64, _ string, complete bool) (bool, error) { return true, onlyIf(complete) },
		},
		{
			order:  "run 0.001",
			answer: func(_ int64, _ string, complete bool) (bool, error) { return true, onlyIf(!complete) },
		},
		{order: "warm ten", fails: `order "warm ten"`},
		{order: "run long", fails: `order "run long"`},
		{order: "rest", fails: `order "rest"`},
	} {
		var out bytes.Buffer
		lines := bufio.NewReader(strings.NewReader(c.order + "\n"))
		spec := &contestSpec{Callers: [][]string{{"a", "b"}, {"c"}}}
		err := obeyAll(t.Context(), &scripted{answer: c.answer}, spec, lines, json.NewEncoder(&out))
		if err != nil {
			t.Fatalf("%s: %v", c.order, err)
		}
		var ready, got contestReply
		replies := json.NewDecoder(&out)
		if err := errors.Join(replies.Decode(&ready), replies.Decode(&got)); err != nil {
			t.Fatalf("%s: %v", c.order, err)
		}
		if c.fails != "" {
			if !strings.Contains(got.Error, c.fails) {
				t.Errorf("%s: got %+v, want an error with %q", c.order, got, c.fails)
			}
			continue
		}
		if got.Error != "" || c.admitted > 0 && (got.Admitted != c.admitted || got.Denied != c.denied) {
			t.Errorf("%s: got %+v, want %d admitted and %d denied", c.order, got, c.admitted, c.denied)
		}
	}
}

func onlyIf(ok bool) error {
	if !ok {
		return errors.New("the other order")
	}
	return nil
}

// TestContestantFails shows that what goes wrong in a process is an error of the parent.
func TestContestantFails(t *testing.T) {
	t.Parallel()
	cmd, err := ownCommand(testContext(t), "nobody")
	if err != nil {
		t.Fatal(err)
	}
	p, err := startContestant(cmd, &contestSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.reply(); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("got %v, want that there is no such contestant", err)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	if _, err := p.ask("warm 1"); err == nil {
		t.Error("after its end: got no error")
	}
}

// answering is a process that gives one reply to everything.
func answering(r contestReply) *contestProcess {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return &contestProcess{in: discarding{io.Discard}, replies: json.NewDecoder(bytes.NewReader(text))}
}

type discarding struct{ io.Writer }

func (discarding) Close() error { return nil }

// TestMeasure adds up what the processes of a player say, and refuses figures in which somebody was
// denied.
func TestMeasure(t *testing.T) {
	t.Parallel()
	c := contest{figures: []side{{"one", 0, orderRun}}}
	play := func(replies ...contestReply) (*round, error) {
		r := &round{
			field: &localField{server: &testkit.DynamoDBServer{}}, contest: &c,
			setting: &settings{length: time.Second},
			replies: make([]contestReply, 1), server: make([]int64, 1),
		}
		var all team
		for _, reply := range replies {
			all = append(all, answering(reply))
		}
		return r, r.measure(all, 0)
	}
	r, err := play(contestReply{Admitted: 300, NS: 2e9, CPU: 5}, contestReply{Admitted: 100, NS: 1e9, CPU: 6})
	want := contestReply{Admitted: 400, NS: 2e9, CPU: 11}
	if err != nil || r.replies[0] != want || r.replies[0].speed() != 200 {
		t.Errorf("got %+v, %v, want %+v", r.replies[0], err, want)
	}
	if _, err := play(contestReply{Admitted: 300, Denied: 1}); err == nil || !strings.Contains(err.Error(), "1 denied") {
		t.Errorf("got %v, want that a call was denied", err)
	}
	if _, err := play(contestReply{}); err == nil {
		t.Error("got no error where there was no call")
	}
}
