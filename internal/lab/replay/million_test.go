package replay

import (
	"bytes"
	"io"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// lineMaker generates a trace line by line, so that it is never in memory as a whole.
type lineMaker struct {
	left, at int
	rest     bytes.Buffer
}

func (m *lineMaker) Read(into []byte) (int, error) {
	for m.rest.Len() < len(into) && m.left > 0 {
		m.left--
		m.at += 3
		m.rest.WriteString("team-")
		m.rest.WriteString(strconv.Itoa(m.at % 100))
		m.rest.WriteString(",1700")
		m.rest.WriteString(strconv.Itoa(1_000_000_000 + m.at)[1:]) // in milliseconds
		m.rest.WriteString(",500,20,a column that nobody wants\n")
	}
	if m.rest.Len() == 0 {
		return 0, io.EOF
	}
	return m.rest.Read(into)
}

// live returns the memory in use.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMillionLines checks that a trace of a million lines takes about 40 bytes each, and can be
// replayed. It is not parallel, because other tests would change the memory in use.
func TestMillionLines(t *testing.T) { // It measures the memory of the process.
	const lines = 1_000_000
	m := &lineMaker{left: lines}
	m.rest.WriteString("who,TIMESTAMP,ContextTokens,GeneratedTokens,note\n")
	before := live()
	trace, err := trace.Read(t.Context(), "t.csv", m, &trace.Options{Entity: "who", TimeUnit: trace.Milliseconds})
	if err != nil {
		t.Fatal(err)
	}
	each := (live() - before) / lines
	if len(trace.Calls) != lines || len(trace.Callers) != 100 || each < 30 || each > 56 {
		t.Errorf("got %d calls of %d callers in %d bytes each, want 40 and some room to grow",
			len(trace.Calls), len(trace.Callers), each)
	}
	d := &weir.Definitions{System: []weir.Limit{{Name: "rpm", Capacity: 100}}}
	trace.Calls = trace.Calls[:50_000]
	w := NewWorkload(trace, &WorkloadOptions{Latency: Latency{Base: time.Second}})
	r, err := Run(t.Context(), d, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Totals.Calls != 50_000 || r.Totals.Admitted == 0 || r.Totals.Denied == 0 {
		t.Errorf("got %+v, want 50,000 calls, some of them admitted and some denied", r.Totals)
	}
	runtime.KeepAlive(trace)
	t.Logf("%d bytes a call, %d operations a second", each, r.Speed.OperationsPerSecond)
}
