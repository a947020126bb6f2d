package kinesis

import "github.com/runnel-stream/runnel/server/internal/catalogue"

// maxWarm is the highest warm throughput of a stream in MiB/s: 10 GiB/s (AWS,
// "UpdateStreamWarmThroughput").
const maxWarm = 10 << 10

// warmThroughput is the model's WarmThroughputObject.
type warmThroughput struct{ TargetMiBps, CurrentMiBps int64 }

// mayWarm returns an error unless a stream of that mode can have a warm throughput: only an
// on-demand stream can, and only in an account with a billing commitment (the model's
// documentation; the texts are guesses).
func mayWarm(a catalogue.Account, mode string, warm int64, now moment) error {
	switch {
	case mode != catalogue.ModeOnDemand:
		return fail(codeValidation, "WarmThroughputMiBps is only supported for data streams with "+
			"the ON_DEMAND capacity mode.")
	case a.Commitment.Status(now.Stamp) == catalogue.CommitmentDisabled:
		return fail(codeValidation, "WarmThroughputMiBps is only supported if "+
			"MinimumThroughputBillingCommitment is enabled for the account %s in %s.",
			a.World.Account, a.World.Region)
	case warm > maxWarm:
		return fail(codeLimit, "WarmThroughputMiBps %d is above the limit of %d for a stream.",
			warm, maxWarm)
	default:
		return nil
	}
}

// warmThroughput returns a stream's warm throughput for DescribeStreamSummary: nil if none was set,
// or while the account has no commitment. Nothing has to be scaled for it, so the current figure
// equals the requested one.
func warmThroughputOf(
	st *catalogue.Stream, a catalogue.Account, now moment,
) *warmThroughput {
	if st.Warm == 0 || a.Commitment.Status(now.Stamp) == catalogue.CommitmentDisabled {
		return nil
	}
	return &warmThroughput{TargetMiBps: st.Warm, CurrentMiBps: st.Warm}
}
