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

// worldTime is the state of the clocks and the disk in a world. The real time is world.now.
//
//   - The producer's clock is hours wrong, by another amount in each run.
//   - The stream's clock follows a wall clock that is set. It never goes back: it stops until the
//     wall clock has caught up. It makes the arrival times and the Dates.
//   - A disk hangs: records have sequence numbers and arrival times, and can be read much later.
//   - A run begins after a boot of the machine, or with a journal that has only FrozenAt.
type worldTime struct {
	offset time.Duration // the error of the producer's clock
	boot   int           // the boot of the producer's machine
	booted time.Time     // when that boot was

	wall    time.Duration // the error of the stream's wall clock
	stream  time.Time     // the last time of the stream's clock
	forward []time.Time   // when it was set forward
	last    time.Time     // the arrival of the last record
	readers time.Time     // the readers' clock at that record

	hung     bool
	reading  *search // the search that waits until the disk goes on
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

// clock returns the producer's time.
func (w *world) clock() time.Time { return w.now.Add(w.time.offset) }

// server returns the stream's time.
func (w *world) server() time.Time {
	if now := w.now.Add(w.time.wall); now.After(w.time.stream) {
		w.time.stream = now
	}
	return w.time.stream
}

// readers returns a clock that advances at least as fast, from one record to a later one, as the
// clock of any reader. It counts each step between two records of any shards, up to a fifth of H.
func (w *world) readers() time.Time {
	t := &w.time
	if t.last.IsZero() {
		return t.readers
	}
	return t.readers.Add(min(w.server().Sub(t.last), w.limits.horizon/5))
}

// stored returns the readers' clock for a record that is stored now.
func (w *world) stored() time.Time {
	t := &w.time
	t.readers, t.last = w.readers(), w.server()
	return t.readers
}

// disturbTime sets a clock, hangs the disk, or lets a long time pass.
func (w *world) disturbTime() {
	h := w.limits.horizon
	switch rapid.IntRange(0, 7).Draw(w.T, "disturb") {
	case 0:
		// Readers count up to a fifth of H for each, and remember H longer than necessary.
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
		w.hangDisk()
	case 3, 4:
		w.advance(time.Duration(rapid.Int64Range(0, int64(3*h)).Draw(w.T, "long")))
	default:
		w.advance(time.Duration(rapid.IntRange(0, 2000).Draw(w.T, "ms")) * time.Millisecond)
	}
}

// hangDisk makes the disk hang, or go on, or write some of its records.
func (w *world) hangDisk() {
	w.time.hung = !w.time.hung || rapid.Bool().Draw(w.T, "goes on")
	for _, s := range w.shards {
		if most := len(s.log); s.visible < most {
			s.visible = rapid.IntRange(s.visible, most).Draw(w.T, "visible")
		}
	}
}

// readable returns how many records of a shard can be read.
func (w *world) readable(s *modelShard) int {
	if !w.time.hung {
		s.visible = len(s.log)
	}
	return s.visible
}

// tooLate reports whether a unit may not be sent any more. In the boot of its first attempt the
// real time counts. In another boot it is the readers' clock, without the steps by which it was set
// forward.
func (w *world) tooLate(first firstSend) bool {
	h := w.limits.horizon
	most := h
	for range w.time.forward {
		most += h / 5
	}
	return w.now.Sub(first.at) > h &&
		(first.boot == w.time.boot || w.readers().Sub(first.readers) > most)
}

// date passes the Date of an answer to the core. The stream made it when the call began or later.
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

// ask answers the core's requests for the stream's time, at once or later.
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

// search looks units up for the core. Like the shell, it reads on while records are stored that
// cannot be read, until it comes to a record that no copy can follow.
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
		w.core.landSearch(w.clock(), s, nil, errors.New("no answer"))
		return
	}
	results := make([]found, len(s.lanes))
	for i := range results {
		results[i].absent = true
	}
	for _, shard := range w.shards {
		if !w.searchShard(s, shard, results) {
			return // go on when more can be read
		}
	}
	t.reading = nil
	w.core.landSearch(w.clock(), s, results, nil)
}

// searchShard reports whether the search has come to an end in the shard.
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

// freeze returns a lane's unit for the journal.
func (w *world) freeze(l *lane) FrozenUnit {
	f := l.frozen(newClock())
	f.BootID = fmt.Sprint("boot ", w.time.boot)
	f.BootTime = l.unit.firstSent.Add(-w.time.offset).Sub(w.time.booted)
	return f
}

// restart begins another run after a while.
func (w *world) restart() {
	t := &w.time
	t.reading, t.question = nil, nil
	down := int64(4 * time.Second)
	if rapid.IntRange(0, 3).Draw(w.T, "down long") == 0 {
		down = int64(3 * w.limits.horizon)
	}
	w.advance(time.Duration(rapid.Int64Range(0, down).Draw(w.T, "down")))
	if rapid.Bool().Draw(w.T, "boots") {
		t.boot++
		up := rapid.Int64Range(0, int64(4*w.limits.horizon)).Draw(w.T, "up")
		t.booted = w.now.Add(-time.Duration(up))
	}
	t.offset = drawOffset(w.T)
	w.start()
	w.unknowns = 0
}

// resume passes a unit of an earlier run to the core.
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
