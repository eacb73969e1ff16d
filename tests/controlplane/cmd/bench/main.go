// Command bench times upstream's scheduling cycle, on plain clusters or with affinity, and prints one JSON object a line.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"controlplane/internal/oracle"
)

type line struct {
	Affinity    string `json:"affinity,omitempty"`
	Nodes       int    `json:"nodes"`
	Parallelism int32  `json:"parallelism"`
	Percentage  int32  `json:"percentageOfNodesToScore"`
	Assume      bool   `json:"assume"`
	Cycles      int    `json:"cycles"`
	NsPerOp     int64  `json:"nsPerOp"`
}

func main() {
	cycles := flag.Int("cycles", 1000, "cycles to time in each setting")
	affinity := flag.Bool("affinity", false, "time pods with terms on each other, on 5000 nodes")
	flag.Parse()
	oracle.New() // silences the log
	encoder := json.NewEncoder(os.Stdout)
	if *affinity {
		timeAffinity(encoder, *cycles)
		return
	}
	for _, nodes := range []int{1000, 5000, 15000} {
		for _, parallelism := range []int32{16, 1} {
			for _, percentage := range []int32{0, 100} {
				for _, assume := range []bool{false, true} {
					timeCycles(encoder, oracle.CycleOptions{
						Nodes: nodes, Parallelism: parallelism, Percentage: percentage, Assume: assume, Cycles: *cycles,
					})
				}
			}
		}
	}
}

func timeAffinity(encoder *json.Encoder, cycles int) {
	for _, workload := range oracle.AffinityWorkloads {
		for _, percentage := range []int32{0, 100} {
			timeCycles(encoder, oracle.CycleOptions{
				Nodes: 5000, Parallelism: 16, Percentage: percentage, Assume: true, Cycles: cycles, Affinity: workload,
			})
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
		o.Affinity, o.Nodes, o.Parallelism, o.Percentage, o.Assume, o.Cycles, total.Nanoseconds() / int64(o.Cycles),
	})
}
