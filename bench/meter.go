package main

import (
	"runtime"
	"time"
)

// measure is what one slice of a work came to.
type measure struct {
	Ops      int64 `json:"ops"`
	NS       int64 `json:"ns"`     // wall time
	CPU      int64 `json:"cpu_ns"` // processor time of the process
	Mallocs  int64 `json:"mallocs"`
	Bytes    int64 `json:"bytes"`
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	// LoadCPU is the processor time of the generator of load, where there is one.
	LoadCPU int64 `json:"load_cpu_ns"`
}

// add sums up.
func (m *measure) add(o measure) {
	m.Ops += o.Ops
	m.NS += o.NS
	m.CPU += o.CPU
	m.Mallocs += o.Mallocs
	m.Bytes += o.Bytes
	m.Admitted += o.Admitted
	m.Denied += o.Denied
	m.LoadCPU += o.LoadCPU
}

// meter measures the parts of a slice between start and stop. What it costs itself lies outside.
type meter struct {
	measure
	before runtime.MemStats
	after  runtime.MemStats
	cpu    int64
	begun  time.Time
}

func (m *meter) start() {
	runtime.ReadMemStats(&m.before)
	m.cpu = processorTime()
	m.begun = time.Now()
}

// stop ends a part in which so many operations were done.
func (m *meter) stop(ops int) {
	m.NS += time.Since(m.begun).Nanoseconds()
	m.CPU += processorTime() - m.cpu
	runtime.ReadMemStats(&m.after)
	m.Ops += int64(ops)
	m.Mallocs += int64(m.after.Mallocs - m.before.Mallocs)
	m.Bytes += int64(m.after.TotalAlloc - m.before.TotalAlloc)
}
