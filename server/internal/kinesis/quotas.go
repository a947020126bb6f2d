package kinesis

import (
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/limit"
)

// quota returns an account's quota; false: there is none.
func (l *limiter) quota(id limit.ID) (int64, bool) {
	t := l.throttle.Load()
	if t == nil {
		return 0, false
	}
	return t.plan.Value(id, "")
}

// mayCreate returns an error if the account has too many CREATING or on-demand streams, or would
// have too many shards. The caller holds the catalogue's lock.
func (l *limiter) mayCreate(st *catalogue.Stream, shards int, now moment) error {
	if most, limited := l.quota(limit.CreatingStreams); limited {
		creating := l.count(st.World, now, func(other *catalogue.Stream) int64 {
			return truth(other.Status(now) == catalogue.StatusCreating)
		})
		if creating >= most {
			return fail(codeLimit, "Number of streams in the CREATING state under account %s "+
				"cannot be more than %d.", st.World.Account, most) // a guess
		}
	}
	if st.Mode == catalogue.ModeOnDemand {
		return l.mayBeOnDemand(st.World, now)
	}
	return l.mayHoldShards(st.World, int64(shards))
}

// mayBeOnDemand returns an error if the account has used up its quota of on-demand streams. The
// caller holds the catalogue's lock.
func (l *limiter) mayBeOnDemand(world wire.World, now moment) error {
	most, limited := l.quota(limit.OnDemandStreams)
	if !limited {
		return nil
	}
	there := l.count(world, now, func(st *catalogue.Stream) int64 {
		return truth(st.Mode == catalogue.ModeOnDemand)
	})
	if there < most {
		return nil
	}
	return fail(codeLimit, "This request would exceed the limit of on-demand streams for the "+
		"account %s in %s. Current count for the account: %d. Limit: %d.",
		world.Account, world.Region, there, most) // worded as that of shards: a guess
}

// mayHoldShards returns an error if so many more open shards would exceed the account's quota.
// Shards of pending reshards count already. Those of on-demand streams do not count (AWS, "Quotas
// and limits"). The text is AWS's, from kinesalite. The caller holds the catalogue's lock.
func (l *limiter) mayHoldShards(world wire.World, more int64) error {
	most, limited := l.quota(limit.Shards)
	if !limited || more <= 0 {
		return nil
	}
	there := l.count(world, l.streams.clock.read(), func(st *catalogue.Stream) int64 {
		if st.Mode != catalogue.ModeProvisioned {
			return 0
		}
		return int64(len(st.OpenShards()) + catalogue.Growth(st.Pending))
	})
	if there+more <= most {
		return nil
	}
	return fail(codeLimit, "This request would exceed the shard limit for the account %s in %s. "+
		"Current shard count for the account: %d. Limit: %d. Number of additional shards that "+
		"would have resulted from this request: %d.",
		world.Account, world.Region, there, most, more)
}

// count sums the results of calling of for each of a world's streams.
func (l *limiter) count(
	world wire.World, now moment, of func(*catalogue.Stream) int64,
) (sum int64) {
	for st := range l.streams.catalogue.All() {
		if st.World == world && !st.Gone(now) {
			sum += of(st)
		}
	}
	return sum
}

func truth(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
