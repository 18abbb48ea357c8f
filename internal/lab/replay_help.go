package lab

const replayHelp = `Replay recorded traffic: what do limits admit and deny of it? Each call reserves
what it used, and settles with the same figures when it ends. Denied calls do not come back.
--estimate and --retry change that.

With --limits FILE the calls are replayed against that file, in virtual time and in this
process. With --server URL they are sent to a server that runs, in real time divided by
--speed, and judged by the limits that it has.

TRACE is a CSV file, or - for standard input, with a line for each call, in order of time:

  TIMESTAMP,ContextTokens,GeneratedTokens
  2023-11-16 18:17:03.9799600,4808,10

Other names of columns, and columns for who called which model and how long the call lasted,
are given with the flags that end in -column. Times are RFC 3339, or like the one above (UTC),
or numbers of --time-unit; they count to the millisecond. --sort takes calls that are out of
order. Nothing is replayed if a line is wrong. A trace may have 10,000,000 calls and 1 GiB.

Tenants. The calls are spread over the entities tenant-1 to tenant-N at random. --seed makes
the same choice again: for each call, the next 64 bits x of PCG-DXSM (Go's math/rand/v2.PCG)
with the state (seed, 1) name the tenant 1 + floor(x * N / 2^64).

Latency. A call lasts BASE + PER_TOKEN for each token that it generated, less than an hour.
At one millisecond, calls end before others come back, and those before others begin; without
--latency a call ends in the millisecond in which it began.

Costs. What a call costs on a limit is found by the limit's name:

  rpm, rpd, requests, calls     1
  tpm, tpd, tokens              total
  itpm, input_tokens            input
  otpm, output_tokens           output
  usd_micros                    3*input+15*output   (an example of a price)

--cost NAME=EXPR says it for other names, or otherwise: EXPR is a sum of whole numbers (for
the call), input, output and total, also as multiples. A concurrency limit needs no cost: a
call takes one slot.

Estimates. Who reserves does not know yet what a call will generate. --estimate fixed:N
reserves N tokens of output for each call, --estimate quantile:0.95 what 95 % of the calls of
the same entity and model stayed within that have ended by then. Each call settles with what
it used. How many stayed within their estimate, and what was reserved in vain, is reported.

Retry. With --retry a denied call comes back at the instant that it was told, as often as it
must, until it is admitted or would come back later than --patience after it first came; then
it has given up, as it has after 1,000 attempts. A call lasts from when it is admitted.

Report. ADMITTED are calls that were charged to a limit, DENIED those that exceeded it, ONLY
IT those of them that exceeded no other; with --retry each attempt counts. AVAILABLE is what
could have been used from the first call to the end of the last: a bucket's capacity and
refill, a window's capacity as often as one begins, a budget's capacity in each period
touched, slots all the time. With more than 8 tenants, those with the same limit are reported
together. Below the table is a chart of what was admitted and denied over time, and of how
much of each limit was in use.

Comparison. --compare FILE2 replays the same calls, by the same callers with the same costs,
against a second limits file, and puts both beside each other: A is --limits, B is --compare.
CHANGE is B less A. Limits belong together that have the same entity, resource and name. Each
call is counted once more by who admitted it in the end: both, only A, only B, or neither.

Page. --html FILE writes a page with all figures and charts that needs neither a network nor
a script. It is written whole, when the replay has ended, or not at all.

Suggestions. --suggest 1% looks for capacities that would have denied at most that share of
the calls when they came (0% for none). Each enforced limit gets one capacity where the file
declares it, for all whom it applies to, with two significant digits; a bucket keeps the ratio
of its refill to it. First each is sized ALONE, by replays in which nothing else denies: the
smallest that a search finds to deny at most the share of the calls that it judges. If they
deny more than that TOGETHER, each gets less of the share. What is printed was replayed as a
whole. A call that costs more than a limit holds counts as denied. --suggest-file FILE writes
the limits file with these numbers, without its comments.

Against a server. Each call is sent at its instant, whatever became of the others; how many
left more than 20 ms late is reported, and a busy machine has some. The server's limits are
as they are: --speed makes an hour of calls come in half a minute, but no bucket refills
faster. Calls that got no answer are counted as errors, never as denials, and after a
hundred errors in a row the replay gives up. Stopped with an interrupt, it settles what is
under way before it ends. The bearer token for it stands in WEIR_TOKEN, or in a file
named with --token-file.`
