package cli

import (
	"math"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// outlook is the load of a fleet and the number of workers that it needs. It is computed from one
// look at the rows of the lease table, which have the measurements of their holders (lease.Stats).
//
// The model. A shard gets bytes at the rate at which they arrived at the position of its reading,
// and its backlog is that rate times the time that it is behind. A worker processes bytes at one
// rate, whichever its shards are:
//
//   - the measured rate of the workers that are behind, since these work as fast as they can; or
//   - if none is behind, the measured rate divided by the share of the time in which a handler ran.
//     A worker that ran less than a twentieth of the time counts as if it had run for that.
//
// A shard needs its rate of arrival and, to be rid of its backlog, the backlog over the time
// within, but no more than one worker's rate, since one worker reads it. The workers needed are the
// fewest such that the number of shards which each gets, evenly divided and rounded up, times the
// mean need of a shard, is within a worker's rate: at least 1, and no more than the shards.
//
// It assumes that records go on to arrive as they did, that a worker's rate does not depend on the
// number of its shards, and that the workers are alike. It is wrong by as much as these are. A
// share of the time counts any handler, so it is too high, and the need too, if a worker's handlers
// run side by side.
type outlook struct {
	workers   int // that hold leases, of whatever language
	shards    int // that can be read: without those that wait for parents
	unclaimed int // of these: no worker holds them, or it has not written for a minute
	unknown   int // of these: there is no measurement

	behind    time.Duration  // the largest
	furthest  runnel.ShardID // the shard of that
	ingest    float64        // bytes a second that arrive
	rate      float64        // bytes a second that are processed
	perWorker float64        // of these, at most; 0 if it was not measured
	backlog   float64        // bytes

	desired int
	hot     []runnel.ShardID // that need more than a worker's rate
	// gone is the time until the backlog is gone if the fleet stays as it is; -1 if that never is.
	gone time.Duration
}

const (
	// atTip is how far behind the tip a shard counts as being at it.
	atTip = 5 * time.Second
	// silentAfter is the age of a measurement after which its worker counts as dead. Workers write
	// every half of the failover time.
	silentAfter = time.Minute
	// leastBusy is the smallest share of the time that a worker's rate is divided by.
	leastBusy = 0.05
)

// shardLoad is a shard's part of an outlook.
type shardLoad struct {
	lease.Lease
	held, measured bool
	behind         time.Duration
	ingest, rate   float64
}

func (l shardLoad) lags() bool { return l.behind > atTip }

func (l shardLoad) backlog() float64 {
	if !l.lags() {
		return 0
	}
	return l.behind.Seconds() * l.ingest
}

// loads returns the shards that can be read.
func loads(leases []lease.Lease, now time.Time) []shardLoad {
	byKey := lease.ByKey(leases)
	var found []shardLoad
	for _, l := range leases {
		waits := slices.ContainsFunc(l.Parents, func(id runnel.ShardID) bool {
			parent, there := byKey[id]
			return there && !parent.Ended()
		})
		if l.Ended() || waits {
			continue
		}
		age := max(0, now.Sub(l.Stats.At))
		of := shardLoad{Lease: l, measured: !l.Stats.At.IsZero()}
		of.held = l.Owner != "" && (!l.Owned() || of.measured && age <= silentAfter)
		if of.measured {
			of.behind, of.ingest = l.Stats.Behind, float64(l.Stats.Ingest)
			if of.held {
				of.rate = float64(l.Stats.Rate)
			} else {
				of.behind += age // nothing was read since then
			}
		}
		found = append(found, of)
	}
	supply(found)
	return found
}

// supply gives the mean rate of arrival to shards of which it is not known.
func supply(all []shardLoad) {
	isKnown := func(l shardLoad) bool { return l.measured && (l.ingest > 0 || !l.lags()) }
	sum, n := 0.0, 0
	for _, l := range all {
		if isKnown(l) {
			sum += l.ingest
			n++
		}
	}
	for i := range all {
		if n > 0 && !isKnown(all[i]) {
			all[i].ingest = sum / float64(n)
		}
	}
}

// outlookOf returns the outlook at a time, with the workers that empty the backlog within a time.
func outlookOf(leases []lease.Lease, now time.Time, within time.Duration) outlook {
	all := loads(leases, now)
	o := outlook{shards: len(all)}
	owners := map[string]bool{}
	for _, l := range all {
		if l.held {
			owners[l.Owner] = true
		} else {
			o.unclaimed++
		}
		if !l.measured {
			o.unknown++
		}
		if l.behind > o.behind {
			o.behind, o.furthest = l.behind, l.Key
		}
		o.ingest, o.rate, o.backlog = o.ingest+l.ingest, o.rate+l.rate, o.backlog+l.backlog()
	}
	o.workers, o.perWorker, o.gone = len(owners), rateOfAWorker(all), untilGone(all)
	o.need(all, within)
	return o
}

// untilGone returns the time until the backlog is gone if each worker goes on with its shards that
// are behind; -1 if that never is.
func untilGone(all []shardLoad) (gone time.Duration) {
	left, arrives := map[string]float64{}, map[string]float64{} // by worker
	rate := 0.0                                                 // of these workers together
	for _, l := range all {
		if !l.lags() {
			continue
		}
		if !l.held {
			return -1
		}
		left[l.Owner] += l.backlog()
		arrives[l.Owner] += l.ingest
		rate += l.rate
	}
	for worker, bytes := range left {
		// Workers are alike. The mean of their measured rates varies less than one of them, from
		// which so much is taken away that little is left.
		gain := rate/float64(len(left)) - arrives[worker]
		if gain <= 0 {
			return -1
		}
		seconds := min(bytes/gain, 1e9)
		gone = max(gone, time.Duration(seconds*float64(time.Second)))
	}
	return gone
}

// rateOfAWorker returns the bytes a second that a worker can process; 0 if it is not known.
func rateOfAWorker(all []shardLoad) float64 {
	type measure struct {
		rate, busy float64
		shards     int
		lags       bool
	}
	of := map[string]measure{}
	for _, l := range all {
		if !l.held || !l.measured {
			continue
		}
		m := of[l.Owner]
		m.rate, m.busy, m.shards = m.rate+l.rate, m.busy+l.Stats.Busy, m.shards+1
		m.lags = m.lags || l.lags()
		of[l.Owner] = m
	}
	var lagging, others, nLagging, nOthers float64
	for _, m := range of {
		switch {
		case m.rate == 0:
		case m.lags:
			lagging, nLagging = lagging+m.rate, nLagging+1
		default:
			others += m.rate / max(m.busy/float64(m.shards), leastBusy)
			nOthers++
		}
	}
	if nLagging > 0 {
		return lagging / nLagging
	}
	if nOthers > 0 {
		return others / nOthers
	}
	return 0
}

// need sets the workers that the shards need.
func (o *outlook) need(all []shardLoad, within time.Duration) {
	if o.shards == 0 {
		return
	}
	if o.desired = 1; o.ingest == 0 && o.unknown == 0 && o.backlog == 0 && o.behind <= atTip {
		return
	}
	if o.perWorker == 0 { // stay as it is
		o.desired = max(1, min(o.workers, o.shards))
		return
	}
	sum := 0.0
	for _, l := range all {
		need := l.ingest + l.backlog()/within.Seconds()
		if need > o.perWorker {
			o.hot = append(o.hot, l.Key)
		}
		sum += min(need, o.perWorker)
	}
	mean := sum / float64(o.shards)
	for o.desired < o.shards && math.Ceil(float64(o.shards)/float64(o.desired))*mean > o.perWorker {
		o.desired++
	}
}
