// Package measure measures the load of a stream or of files, by hash key and by shard.
//
// A load counts bytes or records. It comes from a stream for a while (Observe) or from lines of
// files, each taken for a record (Load.ReadFiles). Reshard plans and the skew of keys are computed
// from it.
package measure
