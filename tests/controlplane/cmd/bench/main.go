// Command bench times upstream's scheduling cycle on plain clusters and prints one JSON object a line.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"controlplane/internal/oracle"
)

type line struct {
	Nodes       int   `json:"nodes"`
	Parallelism int32 `json:"parallelism"`
	Percentage  int32 `json:"percentageOfNodesToScore"`
	Assume      bool  `json:"assume"`
	Cycles      int   `json:"cycles"`
	NsPerOp     int64 `json:"nsPerOp"`
}

func main() {
	cycles := flag.Int("cycles", 1000, "cycles to time in each setting")
	flag.Parse()
	oracle.New() // silences the log
	encoder := json.NewEncoder(os.Stdout)
	for _, nodes := range []int{1000, 5000, 15000} {
		for _, parallelism := range []int32{16, 1} {
			for _, percentage := range []int32{0, 100} {
				for _, assume := range []bool{false, true} {
					total, err := oracle.TimeCycles(oracle.CycleOptions{
						Nodes: nodes, Parallelism: parallelism, Percentage: percentage, Assume: assume, Cycles: *cycles,
					})
					if err != nil {
						fmt.Fprintln(os.Stderr, "bench:", err)
						os.Exit(1)
					}
					_ = encoder.Encode(line{nodes, parallelism, percentage, assume, *cycles, total.Nanoseconds() / int64(*cycles)})
				}
			}
		}
	}
}
