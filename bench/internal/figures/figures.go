// Package figures has what the benchmarks' command lines and tables share.
package figures

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Median returns the median of at least one value: the middle one, or the mean of the two in the
// middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Numbers is a flag of whole numbers with commas between. It implements flag.Value.
type Numbers []int

// String implements flag.Value.
func (n *Numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

// Set implements flag.Value.
func (n *Numbers) Set(text string) error {
	*n = nil
	for word := range strings.SplitSeq(text, ",") {
		number, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		*n = append(*n, number)
	}
	return nil
}
