package rollup

// ReadEvents is readEvents, for the benchmarks.
var ReadEvents = readEvents
