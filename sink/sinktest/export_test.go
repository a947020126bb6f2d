package sinktest

// CheckGaps is the gap cases of Run, as an error.
var CheckGaps = checkGaps
