package lease

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
)

// Claim is a worker's description of itself, in the rows that it takes.
type Claim struct {
	Worker    string // its name; required
	MaxLeases int    // how many leases it may hold; 0 means no limit
	Static    Static // zero unless the name outlives its process
	Sink      bool   // it has a sink, which keeps the position
	Output    string // where its records go, for rows that do not say it; "": it is not settled
	// Failover is the worker's failover time; 0 leaves the row's.
	Failover time.Duration
	// Origin is where the application began, for rows that do not say it.
	Origin runnel.From
}

// Static describes one process of a static worker: its name outlives the process (runnelStatic). A
// later process of the name takes the rows of an earlier one at once, and never the other way.
type Static struct {
	// Number is above the highest number that the process found in the rows of its name. It is the
	// time of its start in milliseconds, unless that is lower: no row may have the name any more,
	// and an earlier process may wake up later.
	Number int64
	// Process is random. It decides between two processes that took the same number.
	Process string
	// Absence is for how long the worker may be away before others take its leases, if that is
	// longer than the failover time.
	Absence time.Duration
}

// Compare returns a positive number if s replaces other, a negative one if other replaces s, and 0
// if both are the same process. The zero Static is replaced by all others.
func (s Static) Compare(other Static) int {
	return cmp.Or(cmp.Compare(s.Number, other.Number), cmp.Compare(s.Process, other.Process))
}

// String returns the attribute's value: the number, the absence in milliseconds and the process.
func (s Static) String() string {
	return fmt.Sprintf("%d %d %s", s.Number, s.Absence.Milliseconds(), s.Process)
}

// LongestAbsence bounds Static.Absence, also in a row that was edited by hand: a lease must not
// wait for ever.
const LongestAbsence = 24 * time.Hour

// largestNumber bounds Static.Number in a row that was edited by hand: the next one is above it.
const largestNumber = 1 << 53

// parseStatic reads an attribute. A value of another shape is none: the row is like that of any
// other worker.
func parseStatic(value string) Static {
	parts := strings.Split(value, " ")
	if len(parts) != 3 || parts[2] == "" {
		return Static{}
	}
	number, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || number < 1 || number > largestNumber {
		return Static{}
	}
	absence, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || absence < 0 || absence > LongestAbsence.Milliseconds() {
		return Static{}
	}
	return Static{
		Number: number, Process: parts[2], Absence: time.Duration(absence) * time.Millisecond,
	}
}
