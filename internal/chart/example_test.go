package chart_test

import (
	"fmt"
	"os"
	"time"

	"github.com/weir-limiter/weir/internal/chart"
)

func ExampleWriteText() {
	calls := &chart.Columns{
		Title: "Calls", Unit: "calls", Times: chart.Times{Step: time.Minute},
		Series: []chart.Series{
			{Name: "admitted", Tone: chart.Good, Values: []int64{20, 35, 40, 40, 25}},
			{Name: "denied", Tone: chart.Bad, Values: []int64{0, 0, 15, 30, 0}},
		},
	}
	o := &chart.TextOptions{Width: 45, Height: 4}
	if err := chart.WriteText(os.Stdout, calls, o); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Calls each 1 min         █ admitted  ▒ denied
	// 80 ┤                        ▒▒▒▒▒▒▒▒
	//    │                ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
	// 40 ┤        ▆▆▆▆▆▆▆▆████████████████▂▂▂▂▂▂▂▂
	//    │████████████████████████████████████████
	//  0 └┬───────┬───────┬───────┬───────┬───────
	//     0       1 min   2 min   3 min   4 min
}
