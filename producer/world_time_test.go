package producer

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// worldTime is how time misbehaves in a world. Its real time is world.now.
//
//   - The producer's clock is hours off, by another amount in each run.
//   - The stream's clock follows a wall clock that is set, but never steps back: it stops until the
//     wall clock has caught up. It makes the arrivals and the Dates.
//   - A disk hangs: records have sequence numbers and arrivals, and can be read much later.
//   - A run begins in another boot of the machine than the one before, or with a journal that says
//     no more than FrozenAt.
type worldTime struct {
	offset time.Duration // of the producer's clock
	boot   int           // of the producer's machine
	booted time.Time     // when that was

	wall    time.Duration // how far the stream's wall clock is off
	stream  time.Time     // the stream's clock, as it was last read
	forward []time.Time   // when it was set forward
	last    time.Time     // the arrival of the last record
	readers time.Time     // a clock of readers, at that record

	hung     bool
	reading  *search // that waits for the end of that
	question *time.Time
	began    map[*call]time.Time // the stream's time when calls began
}

func newWorldTime(t *rapid.T) worldTime {
	w := worldTime{
		booted: time.Unix(1_699_999_999, 0), readers: time.Unix(1_000_000, 0),
		began: map[*call]time.Time{},
	}
	w.offset = drawOffset(t)
	w.wall = drawOffset(t)
	return w
}

func drawOffset(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{
		0, 0, -time.Hour, -10 * time.Minute, time.Second, 20 * time.Minute, time.Hour,
	}).Draw(t, "offset")
}

// clock is the producer's.
func (w *world) clock() time.Time { return w.now.Add(w.time.offset) }

// server is the stream's clock.
func (w *world) server() time.Time {
	if now := w.now.Add(w.time.wall); now.After(w.time.stream) {
		w.time.stream = now
	}
	return w.time.stream
}

// readers is a clock that the clock of no reader is ahead of, from one record to a later one: it
// counts a step between two records of any shards, up to a fifth of H.
func (w *world) readers() time.Time {
	t := &w.time
	if t.last.IsZero() {
		return t.readers
	}
	return t.readers.Add(min(w.server().Sub(t.last), w.limits.horizon/5))
}

// stored is that clock at a record that is stored now.
func (w *world) stored() time.Time {
	t := &w.time
	t.readers, t.last = w.readers(), w.server()
	return t.readers
}

// disturb lets time misbehave, or a long time go by.
func (w *world) disturb() {
	h := w.limits.horizon
	switch rapid.IntRange(0, 7).Draw(w.T, "disturb") {
	case 0:
		// Readers count up to a fifth of H for each, and remember H longer than they have to.
		t := &w.time
		for len(t.forward) > 0 && w.now.Sub(t.forward[0]) > 5*h {
			t.forward = t.forward[1:]
		}
		if len(t.forward) < 4 {
			w.server()
			t.forward = append(t.forward, w.now)
			t.wall += rapid.SampledFrom([]time.Duration{h / 2, 3 * h, 15 * time.Minute, time.Hour}).
				Draw(w.T, "forward")
		}
	case 1:
		w.server()
		w.time.wall -= rapid.SampledFrom([]time.Duration{h / 2, h, 3 * h, 15 * time.Minute}).
			Draw(w.T, "back")
	case 2:
		w.hang()
	case 3, 4:
		w.pass(time.Duration(rapid.Int64Range(0, int64(3*h)).Draw(w.T, "long")))
	default:
		w.pass(time.Duration(rapid.IntRange(0, 2000).Draw(w.T, "ms")) * time.Millisecond)
	}
}

// hang makes the disk hang, or go on, or write some of its records.
func (w *world) hang() {
	w.time.hung = !w.time.hung || rapid.Bool().Draw(w.T, "goes on")
	for _, s := range w.shards {
		if most := len(s.log); s.visible < most {
			s.visible = rapid.IntRange(s.visible, most).Draw(w.T, "visible")
		}
	}
}

// readable is how much of a shard can be read.
func (w *world) readable(s *modelShard) int {
	if !w.time.hung {
		s.visible = len(s.log)
	}
	return s.visible
}

// tooLate reports whether a unit may not be sent any more: in the boot of its first send by the
// real time, and in another by the clock of the readers, without the times that it was set forward.
func (w *world) tooLate(first firstSend) bool {
	h := w.limits.horizon
	most := h
	for range w.time.forward {
		most += h / 5
	}
	return w.now.Sub(first.at) > h &&
		(first.boot == w.time.boot || w.readers().Sub(first.readers) > most)
}

// date gives the core the Date of an answer, which the stream made when the call began or later.
func (w *world) date(answered bool, made *call) {
	began := w.time.began[made]
	delete(w.time.began, made)
	if !answered || rapid.IntRange(0, 4).Draw(w.T, "date") == 0 {
		return
	}
	date := w.server()
	if rapid.Bool().Draw(w.T, "early date") {
		date = began
	}
	w.core.dates.saw(w.began[made].Add(w.time.offset), date.Truncate(time.Second))
}

// ask answers what the core asks of the stream's time, at once or later.
func (w *world) ask(calm bool) {
	t := &w.time
	if w.core.ask(w.clock()) {
		asked := w.server()
		t.question = &asked
	}
	if t.question == nil || !calm && rapid.IntRange(0, 2).Draw(w.T, "asks") == 0 {
		return
	}
	date := *t.question
	if rapid.Bool().Draw(w.T, "late date") {
		date = w.server()
	}
	t.question = nil
	answered := calm || rapid.IntRange(0, 3).Draw(w.T, "answers") > 0
	w.core.landAsk(w.clock(), date.Truncate(time.Second), answered)
}

// search looks units up as the core asks. As the shell does, it reads on while records are stored
// that cannot be read, unless it comes to one that says that nothing more can follow.
func (w *world) search(calm bool) {
	t := &w.time
	if t.reading == nil {
		if t.reading = w.core.search(w.clock()); t.reading == nil {
			return
		}
		t.reading.until = w.limits.behind(w.server().Truncate(time.Second))
	}
	s := t.reading
	if !calm && rapid.IntRange(0, 2).Draw(w.T, "search") == 0 {
		t.reading = nil
		w.core.landSearch(w.clock(), s, nil, errors.New("nobody answers"))
		return
	}
	results := make([]found, len(s.lanes))
	for i := range results {
		results[i].absent = true
	}
	for _, shard := range w.shards {
		if !w.searchShard(s, shard, results) {
			return // until more can be read
		}
	}
	t.reading = nil
	w.core.landSearch(w.clock(), s, results, nil)
}

// searchShard reports whether the search comes to an end in the shard.
func (w *world) searchShard(s *search, shard *modelShard, results []found) bool {
	from := w.core.startOf(shard.id, s.lanes)
	readable := w.readable(shard)
	for _, r := range shard.log[:readable] {
		number := strconv.Itoa(r.number)
		after, _ := strconv.Atoi(string(from.after))
		switch {
		case from.after != "" && r.number <= after, from.after == "" && r.arrival.Before(from.at):
			continue
		case r.arrival.After(s.until):
			return true
		}
		for i, l := range s.lanes {
			at := map[tag]int{{l.unit.id.Producer, l.unit.id.Number}: 0}
			for range unitsIn(&aggregate.Decoder{}, r.data, shard.hashes, at) {
				if results[i].absent {
					results[i] = found{verdict: placed(shard.id, runnel.SequenceNumber(number))}
				}
			}
		}
	}
	return readable == len(shard.log)
}

// freeze is a lane's unit for the journal.
func (w *world) freeze(l *lane) FrozenUnit {
	f := l.frozen(newClock())
	f.BootID = fmt.Sprint("boot ", w.time.boot)
	f.BootTime = l.unit.firstSent.Add(-w.time.offset).Sub(w.time.booted)
	return f
}

// restart begins another run, after a while.
func (w *world) restart() {
	t := &w.time
	t.reading, t.question = nil, nil
	down := int64(4 * time.Second)
	if rapid.IntRange(0, 3).Draw(w.T, "down long") == 0 {
		down = int64(3 * w.limits.horizon)
	}
	w.pass(time.Duration(rapid.Int64Range(0, down).Draw(w.T, "down")))
	if rapid.Bool().Draw(w.T, "boots") {
		t.boot++
		up := rapid.Int64Range(0, int64(4*w.limits.horizon)).Draw(w.T, "up")
		t.booted = w.now.Add(-time.Duration(up))
	}
	t.offset = drawOffset(w.T)
	w.start()
	w.doubts = 0
}

// resume takes in a unit of an earlier run.
func (w *world) resume(f FrozenUnit) {
	cfg := Config{Stream: "s", MaxRecordBytes: 1 << 20}
	if w.unordered() {
		cfg.Order = OrderNone
	}
	records, err := cfg.thaw(f)
	if err != nil {
		w.Fatal(err)
	}
	if rapid.IntRange(0, 5).Draw(w.T, "old state") == 0 {
		f.ServerTime, f.BootID, f.BootTime = time.Time{}, "", 0
	}
	age, exact := f.since(w.now.Sub(w.time.booted), fmt.Sprint("boot ", w.time.boot))
	w.core.resume(w.clock(), f, records, age, exact)
}
