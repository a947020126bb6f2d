package pages

import (
	"math"
	"time"
)

// rate is the number of calls a second that a reader of a shard allows itself. It begins at most,
// falls at a throttle, and grows back.
//
// A throttle says that all readers together are too fast, but not how many they are. Each reader
// follows the same rule, and they come to equal shares. The rule is after TCP CUBIC (RFC 9438), but
// the plateau of its curve depends on the rate:
//
//   - At a throttle the plateau becomes the rate less a part of it. The part is half the square of
//     the rate's share of most. A reader with the whole rate had the shard for itself and now
//     shares it: it gives up a half. Of two readers with a half each, one gives up an eighth, and
//     of five with a fifth each, one gives up 2 %. So the faster one of two gives up more.
//   - From a little below the plateau the rate climbs to it in about the time climb, remains near
//     it for as long, and then climbs faster and faster, since the other reader may have left. This
//     last climb is the same for each reader, fast or slow.
//
// Most time passes a little below the rate at which throttles begin, so throttles are few. A slow
// reader climbs for longer, in order that its few calls have no larger part of throttles.
// TestShares simulates it for several readers, other clients, and several kinds of server.
//
// Without a limit of its own, most is infinite. At the first throttle the rate is then what the
// server answered in the last second, but no less than AWS's limit. The part is that of a half.
type rate struct {
	most    float64       // infinite: no limit
	plateau float64       // infinite before the first throttle
	since   time.Time     // the time of the last throttle that counted, or of the first call
	climb   time.Duration // from then to the plateau
	answers window        // without a limit: the answers of the last second
}

const (
	least     = 0.5              // calls a second: the rate falls no lower
	dip       = 0.05             // of the plateau: the climb begins that far below it
	rise      = 0.1              // of most: the climb above the plateau, in the first time climb
	climb     = 40 * time.Second // for half of the highest rate
	oneSignal = 1500 * time.Millisecond
	assumed   = 0.5 // the share of most, if that is infinite
)

func newRate(most float64) rate {
	if most == 0 {
		most = math.Inf(1)
	}
	return rate{most: most, plateau: math.Inf(1)}
}

// begin notes the first call. The throttles just after it do not count: another worker may have
// read the shard a moment ago and handed it over.
func (r *rate) begin(now time.Time) { r.since = now }

// at returns the calls a second.
func (r *rate) at(now time.Time) float64 {
	if math.IsInf(r.plateau, 1) {
		return r.most
	}
	t := float64(now.Sub(r.since))/float64(r.climb) - 1
	height := dip * r.plateau
	if t > 0 {
		height = rise * r.scale()
	}
	return min(r.most, max(r.lowest(), r.plateau+height*t*t*t))
}

// scale is the highest rate, or AWS's if there is none.
func (r *rate) scale() float64 { return min(r.most, max(AWS.Calls, r.plateau)) }

func (r *rate) lowest() float64 { return min(least, r.most) }

// distance returns the time between two calls.
func (r *rate) distance(now time.Time) time.Duration { return seconds(1 / r.at(now)) }

// part returns the rate's share of the highest one; 1 if there is none.
func (r *rate) part(now time.Time) float64 {
	if math.IsInf(r.most, 1) {
		return 1
	}
	return r.at(now) / r.most
}

// answer notes an answer.
func (r *rate) answer(now time.Time) {
	if math.IsInf(r.most, 1) {
		r.answers.add(now)
	}
}

// refuse notes a throttle, and reports whether the rate fell. Throttles that come close together
// have one cause. The random number in [0, 1) varies the time of the climb: readers must not climb
// together.
func (r *rate) refuse(now time.Time, random float64) (fell bool) {
	if now.Sub(r.since) < oneSignal {
		return false
	}
	was, share := r.at(now), assumed
	switch {
	case math.IsInf(was, 1):
		was = max(AWS.Calls, r.answers.rate(now))
	case !math.IsInf(r.most, 1):
		share = was / r.most
	}
	r.plateau = max(r.lowest(), was*(1-share*share/2))
	stretch := math.Sqrt(r.scale() / 2 / r.plateau)
	r.since, r.climb = now, time.Duration((0.75+random/2)*stretch*float64(climb))
	return true
}

// window counts events by the second, and estimates their number in the last one.
type window struct {
	begin     time.Time
	this, old float64
}

func (w *window) add(now time.Time) {
	w.roll(now)
	w.this++
}

func (w *window) rate(now time.Time) float64 {
	w.roll(now)
	return w.this + w.old*(1-now.Sub(w.begin).Seconds())
}

func (w *window) roll(now time.Time) {
	switch age := now.Sub(w.begin); {
	case age >= 2*time.Second:
		w.begin, w.this, w.old = now, 0, 0
	case age >= time.Second:
		w.begin, w.this, w.old = w.begin.Add(time.Second), 0, w.this
	}
}
