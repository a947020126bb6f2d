//go:build linux

package processes_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	nouns "github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// numberedRecord is the n-th user record of a key.
type numberedRecord struct {
	key string
	n   int
}

// shardRecords has the user records of a shard, in order, as the API gives them.
type shardRecords struct {
	records []numberedRecord
	at      []nouns.Position // of each
	indexes map[nouns.Position]int
	last    map[nouns.SequenceNumber]int64 // the last Position.Sub of each aggregate
}

// readStream reads every shard to its end, without package consumer.
func (r *recordRun) readStream() map[nouns.ShardID]*shardRecords {
	listed, err := r.client.ListShards(r.t.Context(), &kinesis.ListShardsInput{
		StreamName: aws.String("events"),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	all := map[nouns.ShardID]*shardRecords{}
	for _, shard := range listed.Shards {
		s := &shardRecords{
			indexes: map[nouns.Position]int{}, last: map[nouns.SequenceNumber]int64{},
		}
		all[nouns.ShardID(*shard.ShardId)] = s
		at, err := r.client.GetShardIterator(r.t.Context(), &kinesis.GetShardIteratorInput{
			StreamName: aws.String("events"), ShardId: shard.ShardId,
			ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			r.t.Fatal(err)
		}
		for next := at.ShardIterator; next != nil; {
			out, err := r.client.GetRecords(r.t.Context(), &kinesis.GetRecordsInput{
				ShardIterator: next,
			})
			if err != nil {
				r.t.Fatal(err)
			}
			for _, record := range out.Records {
				s.add(r.t, record, rangeOf(shard))
			}
			if next = out.NextShardIterator; len(out.Records) == 0 {
				break
			}
		}
	}
	return all
}

// add adds the user records of a Kinesis record. A void aggregate has none: its producer sends them
// again.
func (s *shardRecords) add(t *testing.T, record types.Record, shard keyspace.Range) {
	at := nouns.Position{Sequence: nouns.SequenceNumber(*record.SequenceNumber)}
	var decoder aggregate.Decoder
	if !decoder.Open(record.Data) {
		s.addOne(t, at, *record.PartitionKey, record.Data)
		return
	}
	if decoder.Check(shard) != nil {
		return
	}
	s.last[at.Sequence] = int64(decoder.Len() - 1)
	for sub, user := range decoder.Records() {
		at.Sub = int64(sub)
		s.addOne(t, at, user.PartitionKey, user.Data)
	}
}

func (s *shardRecords) addOne(t *testing.T, at nouns.Position, key string, data []byte) {
	n, err := strconv.Atoi(string(data))
	if err != nil {
		t.Fatal(err)
	}
	s.indexes[at] = len(s.records)
	s.records, s.at = append(s.records, numberedRecord{key, n}), append(s.at, at)
}

// recordChecker checks the workers' log line by line:
//
//   - Of each key the records are done first in the order in which they were put, and none is begun
//     before the one before it is done.
//   - When the test sees a checkpoint in a lease row, each record up to it is done. So no
//     checkpoint is above the lowest unfinished record.
//   - From then on no record up to it is begun again, by whatever worker. Only a worker
//     that is stopped between its look at the lease and the call begins one, on each processor.
//   - No record is begun 10,000 or more records behind the lowest unfinished one of its shard.
//   - No checkpoint goes back.
type recordChecker struct {
	put    map[string]int
	shards map[nouns.ShardID]*shardRecords
	looks  []look
	lines  []string
	lost   map[string]bool // workers that lost a lease

	done map[numberedRecord]bool
	last map[string]int                   // the number of each key's last record that is done
	low  map[nouns.ShardID]int            // the index of the lowest unfinished record
	rows map[nouns.ShardID]nouns.Position // the last checkpoints seen
	upTo map[nouns.ShardID]int            // the index of the first record behind them

	faults         []string
	handled, again int            // records that are done, and that are done once more
	inside         int            // checkpoints seen inside an aggregate
	furthest       int            // the longest way from a lowest unfinished record
	ghosts         map[string]int // records begun again after their checkpoint, by worker and shard
}

func newRecordChecker(
	put map[string]int, shards map[nouns.ShardID]*shardRecords, looks []look, log string,
) *recordChecker {
	c := &recordChecker{
		put: put, shards: shards, looks: looks, lines: strings.SplitAfter(log, "\n"),
		lost: map[string]bool{}, done: map[numberedRecord]bool{}, last: map[string]int{},
		low: map[nouns.ShardID]int{}, rows: map[nouns.ShardID]nouns.Position{},
		upTo: map[nouns.ShardID]int{}, ghosts: map[string]int{},
	}
	for _, line := range c.lines {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "lost" {
			c.lost[fields[1]] = true
		}
	}
	return c
}

func (c *recordChecker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// missing returns the keys of which records are not done.
func (c *recordChecker) missing() (keys []string) {
	for key, n := range c.put {
		if c.last[key] < n {
			keys = append(keys, key)
		}
	}
	return keys
}

func (c *recordChecker) check() {
	place := int64(0)
	for _, line := range c.lines {
		for len(c.looks) > 0 && c.looks[0].size <= place {
			c.look(c.looks[0])
			c.looks = c.looks[1:]
		}
		place += int64(len(line))
		c.line(line)
	}
	for _, rest := range c.looks {
		c.look(rest)
	}
	for ghost, n := range c.ghosts {
		if worker, _, _ := strings.Cut(ghost, " "); !c.lost[worker] || n > runtime.NumCPU() {
			c.fault("%s began %d records again after a checkpoint behind them; the worker has "+
				"lost a lease: %v", ghost, n, c.lost[worker])
		}
	}
}

// look takes the checkpoints of all rows.
func (c *recordChecker) look(l look) {
	for _, row := range l.rows {
		s, now, before := c.shards[row.Key], row.Processed(), c.rows[row.Key]
		if s == nil { // it is newer than the reading of the stream
			continue
		}
		if now.Less(before) {
			c.fault("the checkpoint of %s went from %s back to %s", row.Key, before, now)
		}
		if last, packed := s.last[now.Sequence]; packed && now.Sub < last && now != before {
			c.inside++
		}
		c.rows[row.Key] = now
		for ; c.upTo[row.Key] < len(s.records); c.upTo[row.Key]++ {
			i := c.upTo[row.Key]
			if now.Less(s.at[i]) {
				break
			}
			if !c.done[s.records[i]] {
				c.fault("the checkpoint of %s is %s, and %v at %s is unfinished", row.Key, now,
					s.records[i], s.at[i])
			}
		}
	}
}

// line takes a line of the log, unless it is incomplete or newer than the reading of the stream.
func (c *recordChecker) line(line string) {
	fields := strings.Fields(line)
	if !strings.HasSuffix(line, "\n") || len(fields) != 7 {
		return
	}
	worker, shard := fields[1], nouns.ShardID(fields[2])
	s := c.shards[shard]
	if s == nil {
		return
	}
	at := nouns.Position{Sequence: nouns.SequenceNumber(fields[3])}
	at.Sub, _ = strconv.ParseInt(fields[4], 10, 64)
	i, found := s.indexes[at]
	if !found {
		return
	}
	r := s.records[i]
	if text := fmt.Sprintf("%s %d", r.key, r.n); text != fields[5]+" "+fields[6] {
		c.fault("%s got %q at %s of %s, want %q", worker, fields[5:], at, shard, text)
	}
	if fields[0] == "begin" {
		c.begin(worker, shard, r, i)
		return
	}
	switch {
	case c.done[r]:
		c.again++
		return
	case r.n != c.last[r.key]+1:
		c.fault("%v was done by %s behind number %d", r, worker, c.last[r.key])
	}
	c.done[r] = true
	c.last[r.key] = r.n
	c.handled++
	for c.low[shard] < len(s.records) && c.done[s.records[c.low[shard]]] {
		c.low[shard]++
	}
}

func (c *recordChecker) begin(worker string, shard nouns.ShardID, r numberedRecord, i int) {
	if i < c.upTo[shard] {
		c.ghosts[worker+" "+string(shard)]++
	}
	if before := (numberedRecord{r.key, r.n - 1}); r.n > 1 && !c.done[before] {
		c.fault("%v was begun by %s before number %d was done", r, worker, before.n)
	}
	ahead := i - c.low[shard]
	c.furthest = max(c.furthest, ahead)
	if ahead >= maxAhead {
		c.fault("%v was begun by %s %d records behind the lowest unfinished one", r, worker, ahead)
	}
}
