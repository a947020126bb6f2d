package cli

import (
	"math"

	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/internal/exit"
)

// readRate is the value of --read-rate, the highest number of reads a second and shard; 0 is the
// default.
type readRate float64

func (r *readRate) addFlag(flags *pflag.FlagSet) {
	flags.Float64Var((*float64)(r), "read-rate", 0,
		"most reads a second and shard (default 5, AWS's limit; none at a loopback endpoint)")
}

func (r readRate) check() error {
	if rate := float64(r); !(rate >= 0) || math.IsInf(rate, 1) {
		return exit.Usage("--read-rate is %g: want 0 (the default) or more reads a second and "+
			"shard", rate)
	}
	return nil
}
