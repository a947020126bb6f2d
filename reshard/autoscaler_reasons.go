package reshard

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// describe returns the load of a shard, as a reason begins.
func (d *deciding) describe(s measured) string {
	text := fmt.Sprintf("%s takes %s/s and %s/s, %s of capacity", s.ID,
		rate(s.seen.bytes*d.policy.ShardBytes),
		count(s.seen.records*d.policy.ShardRecords, "record"), percent(s.seen.load()))
	if s.refused == 0 {
		return text
	}
	text += fmt.Sprintf("; %s refused", count(s.refused, "attempt"))
	if s.load != s.seen {
		text += ", with these " + percent(s.load.load())
	}
	return text
}

// names names the neighbours in [from, to).
func (d *deciding) names(from, to int) string {
	if to-from == 2 {
		return fmt.Sprintf("%s and %s", d.shards[from].ID, d.shards[to-1].ID)
	}
	return fmt.Sprintf("the %d shards from %s to %s", to-from, d.shards[from].ID,
		d.shards[to-1].ID)
}

// heaviest returns the weight of the shard's heaviest hash key. If its partition key is known,
// name is that key as the end of a sentence.
func (d *deciding) heaviest(shard int) (name string, weight float64) {
	most := uint64(0)
	var at int
	for i, point := range d.points {
		load := max(point.Weight, point.Also)
		if load > most && d.shards[shard].Range.Contains(point.At) {
			most, at = load, i
		}
	}
	// A point is a cell of the key space: its key is the heaviest name up to the next point.
	for _, hot := range d.sample.Hot {
		above := at+1 == len(d.points) || hot.Hash.Less(d.points[at+1].At)
		if above && !hot.Hash.Less(d.points[at].At) {
			return ", " + strconv.Quote(hot.Name), float64(most)
		}
	}
	return "", float64(most)
}

// byLoad compares shards by their offered load.
func byLoad(a, b measured) int { return cmp.Compare(a.load.load(), b.load.load()) }

// percent formats a fraction.
func percent(part float64) string {
	if part < 0.1 && part > 0 {
		return fmt.Sprintf("%.1f%%", 100*part)
	}
	return fmt.Sprintf("%.0f%%", 100*part)
}

// rate formats bytes a second, without the "/s".
func rate(bytes float64) string {
	if bytes < 100<<10 {
		return fmt.Sprintf("%.1f KiB", bytes/(1<<10))
	}
	return fmt.Sprintf("%.2f MiB", bytes/(1<<20))
}

func count(n float64, noun string) string {
	text := fmt.Sprintf("%.0f", n)
	if text == "1" {
		return "1 " + noun
	}
	return text + " " + noun + "s"
}

func shardCount(n int) string  { return count(float64(n), "shard") }
func windowCount(n int) string { return count(float64(n), "window") }

// short formats a duration, rounded to seconds, or to milliseconds up to one minute.
func short(d time.Duration) string {
	if d > time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}
