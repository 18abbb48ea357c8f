package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// contest is a comparison on a DynamoDB Local of its own: some players, one after the other.
type contest struct {
	name, title, note string
	// parent is the entity to which all others cascade; empty for none.
	parent string
	// callers has a list of entities for each caller.
	callers [][]string
	players []player
	// figures are what is measured: a side's world is a player, and its work an order.
	figures []side
	ratios  []ratio // of the figures' speeds
}

// player is a contestant, in one process or, where its language computes on one core alone, in several
// that share the callers.
type player struct {
	name      string
	processes int
}

// keep leaves only the figures whose label matches, and the ratios and players that are left with
// them. It reports whether any figure is left.
func (c *contest) keep(labels *regexp.Regexp) bool {
	c.figures, c.players, c.ratios = pick(labels, c.figures, c.players, c.ratios)
	return len(c.figures) > 0
}

// contestResult is what a contest came to.
type contestResult struct {
	contest *contest
	setting *settings
	runs    [][]contestReply // of each run, by figure
	server  [][]int64        // processor time of DynamoDB Local, by the same
}

// arena is where contests take place.
type arena interface {
	// open starts a DynamoDB Local with nothing in it.
	open(ctx context.Context) (field, error)
	// start starts a process of a contestant.
	start(ctx context.Context, name string, spec *contestSpec) (*contestProcess, error)
}

// field is a DynamoDB Local.
type field interface {
	// table makes a table, with version record and namespace, and without a stream.
	table(ctx context.Context, name string) error
	endpoint() string
	client() *ddb.Client
	// cpu is its processor time in nanoseconds, or 0 where that is not known.
	cpu() int64
	close()
}

// contestCapacity is that of the one limit, so much that no run can use it up.
const contestCapacity = plenty

// runContest has the players play so many times, each time on a new DynamoDB Local, in an order that
// turns and reverses.
func runContest(ctx context.Context, a arena, c *contest, s *settings) (*contestResult, error) {
	res := &contestResult{contest: c, setting: s}
	for run := range s.runs {
		r, err := runOnce(ctx, a, c, s, run)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		res.runs, res.server = append(res.runs, r.replies), append(res.server, r.server)
	}
	return res, nil
}

// round is one run of a contest, on one DynamoDB Local.
type round struct {
	arena   arena
	field   field
	contest *contest
	setting *settings
	replies []contestReply // by figure
	server  []int64        // processor time of the field, by figure
}

func runOnce(ctx context.Context, a arena, c *contest, s *settings, run int) (*round, error) {
	f, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := heat(ctx, f, s.heat); err != nil {
		return nil, err
	}
	r := &round{
		arena: a, field: f, contest: c, setting: s,
		replies: make([]contestReply, len(c.figures)), server: make([]int64, len(c.figures)),
	}
	for k := range c.players {
		i := (k + run/2) % len(c.players)
		if run%2 == 1 {
			i = len(c.players) - 1 - i
		}
		if err := r.play(ctx, i); err != nil {
			return nil, fmt.Errorf("%s: %w", c.players[i].name, err)
		}
	}
	return r, nil
}

// play has one player warm up on a table of its own and then deliver its figures.
func (r *round) play(ctx context.Context, i int) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	table := fmt.Sprintf("bench-%d", i)
	if err := r.field.table(ctx, table); err != nil {
		return err
	}
	spec := &contestSpec{
		Table: table, Region: contestRegion, Endpoint: r.field.endpoint(), Capacity: contestCapacity,
		Parent: r.contest.parent, Callers: r.contest.callers, Warm: r.setting.warm,
	}
	if i == 0 {
		spec.Profile = r.setting.profile
	}
	team, err := startTeam(ctx, r.arena, &r.contest.players[i], spec)
	defer func() { err = errors.Join(err, team.close()) }()
	if err != nil {
		return err
	}
	if _, err := team.ask(fmt.Sprintf("%s %d", orderWarm, r.setting.warm/len(team))); err != nil {
		return err
	}
	for k, figure := range r.contest.figures {
		if figure.world == i {
			if err := r.measure(team, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure gets one figure from the player's team.
func (r *round) measure(t team, figure int) error {
	before := r.field.cpu()
	order := fmt.Sprintf("%s %.3f", r.contest.figures[figure].work, r.setting.length.Seconds())
	reply, err := t.ask(order)
	if err != nil {
		return err
	}
	if reply.Denied > 0 || reply.Admitted == 0 {
		return fmt.Errorf("%d calls were admitted and %d denied; want all admitted",
			reply.Admitted, reply.Denied)
	}
	r.replies[figure], r.server[figure] = reply, r.field.cpu()-before
	return nil
}

// team are the processes of one player.
type team []*contestProcess

// startTeam starts a player's processes one after the other, since the first one declares what all use.
func startTeam(ctx context.Context, a arena, p *player, spec *contestSpec) (team, error) {
	var t team
	share := (len(spec.Callers) + p.processes - 1) / p.processes
	declared := false
	for callers := range slices.Chunk(spec.Callers, share) {
		mine := *spec
		mine.Declare, mine.Everybody, mine.Callers = !declared, spec.Callers, callers
		declared = true
		process, err := a.start(ctx, p.name, &mine)
		if err != nil {
			return t, err
		}
		t = append(t, process)
		if _, err := process.reply(); err != nil {
			return t, err
		}
	}
	return t, nil
}

// ask gives all processes an order at once, and returns what became of it in all together; the time is
// that of the slowest.
func (t team) ask(order string) (sum contestReply, err error) {
	replies, errs := make([]contestReply, len(t)), make([]error, len(t))
	var group sync.WaitGroup
	for i, p := range t {
		group.Go(func() { replies[i], errs[i] = p.ask(order) })
	}
	group.Wait()
	for _, r := range replies {
		sum.Admitted += r.Admitted
		sum.Denied += r.Denied
		sum.NS = max(sum.NS, r.NS)
		sum.CPU += r.CPU
		sum.Writes += r.Writes
		sum.ParentWrites += r.ParentWrites
		sum.Reads += r.Reads
	}
	return sum, errors.Join(errs...)
}

func (t team) close() error {
	var errs []error
	for _, p := range t {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// speed is how many calls there were in a second.
func (r *contestReply) speed() int64 {
	if r.NS == 0 {
		return 0
	}
	return r.Admitted * int64(time.Second) / r.NS
}
