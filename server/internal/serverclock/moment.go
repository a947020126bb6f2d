package serverclock

import "math"

// Moment is one reading of the server's two clocks.
type Moment struct {
	// Stamp is the time of day, in ms since 1970: the Date of an answer, the arrival of a record.
	// It never steps back, and may step forward with the system's clock.
	Stamp int64
	// Elapsed counts the time that has gone by, in ms. Only differences have a meaning. It runs
	// evenly over any steps of the system's clock.
	Elapsed int64

	past *past // nil: Stamp has always been Elapsed
	hold bool  // nothing expires
}

// At returns the moment at which both clocks read ms, for tests of packages that are given moments.
func At(ms int64) Moment { return Moment{Stamp: ms, Elapsed: ms} }

// never is a horizon before all stamps.
const never = math.MinInt64

// Horizon returns the latest Stamp that is at least age old, in ms: records with an earlier one
// have expired. The age is elapsed time, so a step of the system's clock expires nothing. While
// nothing may expire, the horizon is before all stamps.
func (m Moment) Horizon(age int64) int64 {
	if m.hold {
		return never
	}
	return m.past.stamp(m.Elapsed - age)
}
