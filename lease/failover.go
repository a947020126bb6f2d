package lease

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// LongestFailover returns the longest failover time in these rows; 0 if none says one. It is for a
// program with a failover time of its own, which cannot know that of the workers. An owner may be
// silent for its own failover time, and lives.
//
// The rows of ended shards and of Java workers do not count. A row without an owner counts: a
// worker that holds no lease has no row of its own.
func LongestFailover(leases []Lease) (longest time.Duration) {
	for _, l := range leases {
		if !l.Ended() && (l.Owner == "" || l.Owned()) {
			longest = max(longest, l.Failover)
		}
	}
	return longest
}

// readFailover reads runnelFailover. A value that is no time in milliseconds is none, and a time is
// bounded, as a person may have edited it: a lease must not wait for ever.
func readFailover(row item) time.Duration {
	value, ok := row[attrFailover].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	ms, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil || ms < 0 {
		return 0
	}
	return time.Duration(min(ms, LongestAbsence.Milliseconds())) * time.Millisecond
}
