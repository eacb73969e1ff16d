// Command bench times upstream's scheduling cycle and prints one JSON object a line.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"controlplane/internal/oracle"
)

type line struct {
	Workload    string `json:"workload"`
	Nodes       int    `json:"nodes"`
	Parallelism int32  `json:"parallelism"`
	Percentage  int32  `json:"percentageOfNodesToScore"`
	Assume      bool   `json:"assume"`
	Cycles      int    `json:"cycles"`
	NsPerOp     int64  `json:"nsPerOp"`
}

func main() {
	cycles := flag.Int("cycles", 1000, "cycles to time in each setting")
	all := flag.Bool("workloads", false, "time all workloads, on 5000 nodes")
	workload := flag.String("workload", "", "time this workload alone")
	nodes := flag.Int("nodes", 5000, "its number of nodes")
	percentage := flag.Int("percentage", 0, "its percentage of nodes to score, 0 for adaptive")
	flag.Parse()
	oracle.New() // silences the log
	encoder := json.NewEncoder(os.Stdout)
	setting := oracle.CycleOptions{Nodes: *nodes, Parallelism: 16, Assume: true, Cycles: *cycles}
	switch {
	case *workload != "":
		setting.Workload, setting.Percentage = *workload, int32(*percentage)
		timeCycles(encoder, setting)
	case *all:
		for _, setting.Workload = range oracle.Workloads {
			for _, setting.Percentage = range []int32{0, 100} {
				timeCycles(encoder, setting)
			}
		}
	default:
		timePlain(encoder, *cycles)
	}
}

func timePlain(encoder *json.Encoder, cycles int) {
	for _, nodes := range []int{1000, 5000, 15000} {
		for _, parallelism := range []int32{16, 1} {
			for _, percentage := range []int32{0, 100} {
				for _, assume := range []bool{false, true} {
					timeCycles(encoder, oracle.CycleOptions{
						Nodes: nodes, Parallelism: parallelism, Percentage: percentage, Assume: assume, Workload: "plain", Cycles: cycles,
					})
				}
			}
		}
	}
}

func timeCycles(encoder *json.Encoder, o oracle.CycleOptions) {
	total, err := oracle.TimeCycles(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	_ = encoder.Encode(line{
		o.Workload, o.Nodes, o.Parallelism, o.Percentage, o.Assume, o.Cycles, total.Nanoseconds() / int64(o.Cycles),
	})
}
