package sinktest

// CheckGaps runs the gap cases of Run and returns an error.
var CheckGaps = checkGaps
