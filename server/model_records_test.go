package server_test

import (
	"crypto/md5"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"pgregory.net/rapid"
)

// The model-based test's puts and reads.

// entry is a record to be put, and the hash key that decides its shard.
type entry struct {
	key, data string
	explicit  *string
	hash      *big.Int
}

func (m *machine) entry() entry {
	m.serial++
	e := entry{key: rapid.StringN(1, 20, 256).Draw(m.T, "key"), data: fmt.Sprint(m.serial)}
	if rapid.Bool().Draw(m.T, "explicit") {
		e.hash = m.anyHash()
		e.explicit = aws.String(e.hash.String())
		return e
	}
	sum := md5.Sum([]byte(e.key)) // AWS, "PutRecord"
	e.hash = new(big.Int).SetBytes(sum[:])
	return e
}

// stored adds a record to the model, with the answer to its put.
func (m *machine) stored(st *modelStream, e entry, id, number string) {
	if st.status(m.now) == "DELETING" {
		return
	}
	owner := st.owner(e.hash)
	if id != shardID(owner) {
		m.Fatalf("hash key %v went to %s, want %s", e.hash, id, shardID(owner))
	}
	if last := st.last(owner); compareNumbers(number, last) <= 0 {
		m.Fatalf("the number %s in %s, after %s", number, id, last)
	}
	sh := st.shards[owner]
	sh.records = append(sh.records, modelRecord{e.key, e.data, number, m.now})
}

func (m *machine) put() {
	name, e := m.anyName(), m.entry()
	got, err := m.client.PutRecord(m.ctx, &kinesis.PutRecordInput{
		StreamName: aws.String(name), PartitionKey: aws.String(e.key), Data: []byte(e.data),
		ExplicitHashKey: e.explicit,
	})
	if m.expect("put to "+name, err, m.writable(name)...) {
		m.stored(m.streams[name], e, *got.ShardId, *got.SequenceNumber)
	}
}

func (m *machine) putMany() {
	name := m.anyName()
	in := &kinesis.PutRecordsInput{StreamName: aws.String(name)}
	entries := make([]entry, rapid.IntRange(1, 6).Draw(m.T, "records"))
	for i := range entries {
		entries[i] = m.entry()
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(entries[i].key), Data: []byte(entries[i].data),
			ExplicitHashKey: entries[i].explicit,
		})
	}
	got, err := m.client.PutRecords(m.ctx, in)
	if !m.expect("put many to "+name, err, m.writable(name)...) {
		return
	}
	if *got.FailedRecordCount != 0 || len(got.Records) != len(entries) {
		m.Fatalf("%d of %d records failed: %v", *got.FailedRecordCount, len(entries), got.Records)
	}
	for i, result := range got.Records { // "in natural order" (AWS, "PutRecords")
		m.stored(m.streams[name], entries[i], *result.ShardId, *result.SequenceNumber)
	}
}

// cursor is a shard iterator and the model's knowledge of it.
type cursor struct {
	text   string
	stream *modelStream
	shard  int
	next   int // the first record that it reads, if that has not expired
	issued time.Time
}

// maxCursors bounds the number of cursors that the test keeps.
const maxCursors = 12

func (m *machine) keep(c cursor) {
	if len(m.cursors) == maxCursors {
		m.cursors = slices.Delete(m.cursors, 0, 1)
	}
	m.cursors = append(m.cursors, c)
}

func (m *machine) iterator() {
	st, there := m.some()
	if !there {
		return
	}
	index := m.readable(st)
	kind := rapid.SampledFrom(types.ShardIteratorType("").Values()).Draw(m.T, "type")
	in := &kinesis.GetShardIteratorInput{
		StreamName: aws.String(st.name), ShardId: aws.String(shardID(index)),
		ShardIteratorType: kind,
	}
	c := cursor{stream: st, shard: index, issued: m.now}
	want := ""
	var sh *modelShard
	if index < len(st.shards) {
		sh = st.shards[index]
	}
	switch kind {
	case types.ShardIteratorTypeLatest:
		if sh != nil {
			c.next = len(sh.records)
		}
	case types.ShardIteratorTypeAtTimestamp:
		want = m.atTimestamp(sh, in, &c)
	case types.ShardIteratorTypeAtSequenceNumber, types.ShardIteratorTypeAfterSequenceNumber:
		if sh == nil || !m.atNumber(sh, in, &c) {
			return
		}
	case types.ShardIteratorTypeTrimHorizon:
	}
	got, err := m.client.GetShardIterator(m.ctx, in)
	if !st.visible(index) {
		want = notFound
	}
	if m.expect(fmt.Sprintf("iterator %s on %s %d", kind, st.name, index), err, want) {
		c.text = *got.ShardIterator
		m.keep(c)
		if rapid.Bool().Draw(m.T, "at once") {
			m.readFrom(c)
		}
	}
}

// readable draws a shard, mostly one with records; the last one is not there.
func (m *machine) readable(st *modelStream) int {
	var filled []int
	for i, sh := range st.shards {
		if len(sh.records) > 0 {
			filled = append(filled, i)
		}
	}
	if len(filled) > 0 && rapid.IntRange(0, 3).Draw(m.T, "any") > 0 {
		return rapid.SampledFrom(filled).Draw(m.T, "filled shard")
	}
	return rapid.IntRange(0, len(st.shards)).Draw(m.T, "shard")
}

// atTimestamp draws a time: of a record, near it, or in the future, which is refused.
func (m *machine) atTimestamp(
	sh *modelShard, in *kinesis.GetShardIteratorInput, c *cursor,
) (want string) {
	at := m.now
	if sh != nil && len(sh.records) > 0 {
		i := rapid.IntRange(0, len(sh.records)-1).Draw(m.T, "record")
		at = sh.records[i].arrival
	}
	at = at.Add(rapid.SampledFrom([]time.Duration{
		-time.Hour, -time.Millisecond, 0, time.Millisecond, time.Hour,
	}).Draw(m.T, "off"))
	in.Timestamp = aws.Time(at)
	if sh != nil {
		c.next = sh.firstAt(at)
	}
	if at.After(m.now) {
		return invalid
	}
	return ""
}

// atNumber draws a sequence number: a record's, or the shard's first or last if it is known.
func (m *machine) atNumber(
	sh *modelShard, in *kinesis.GetShardIteratorInput, c *cursor,
) (told bool) {
	after := in.ShardIteratorType == types.ShardIteratorTypeAfterSequenceNumber
	i := rapid.IntRange(-1, len(sh.records)).Draw(m.T, "record")
	switch {
	case i >= 0 && i < len(sh.records):
		in.StartingSequenceNumber = aws.String(sh.records[i].number)
		if c.next = i; after {
			c.next++
		}
	case i < 0 && sh.start != "":
		in.StartingSequenceNumber = aws.String(sh.start)
	case i >= 0 && sh.end != "":
		in.StartingSequenceNumber = aws.String(sh.end)
		c.next = len(sh.records)
	default:
		return false
	}
	return true
}

// read reads from an iterator, of whatever age and stream.
func (m *machine) read() {
	if len(m.cursors) > 0 {
		m.readFrom(rapid.SampledFrom(m.cursors).Draw(m.T, "iterator"))
	}
}

func (m *machine) readFrom(c cursor) {
	in := &kinesis.GetRecordsInput{ShardIterator: aws.String(c.text)}
	if rapid.Bool().Draw(m.T, "limited") {
		in.Limit = aws.Int32(int32(rapid.IntRange(1, 4).Draw(m.T, "limit")))
	}
	got, err := m.client.GetRecords(m.ctx, in)
	what := fmt.Sprintf("read %s %d from %d", c.stream.name, c.shard, c.next)
	switch {
	case m.now.Sub(c.issued) > 5*time.Minute: // "expires 5 minutes after it is returned"
		m.expect(what, err, expired)
	case m.streams[c.stream.name] != c.stream: // deleted, and perhaps made again
		m.expect(what, err, notFound, invalid)
	case !c.stream.visible(c.shard):
		m.expect(what, err, notFound)
	case c.stream.status(m.now) == "DELETING":
		m.expect(what, err, "", notFound)
	default:
		m.expect(what, err, "")
		if next, more := m.compare(c, in.Limit, got); more {
			m.keep(next) // and the old one stays good
		}
	}
}

// compare checks the answer to a read, and returns the next iterator.
func (m *machine) compare(
	c cursor, limit *int32, got *kinesis.GetRecordsOutput,
) (next cursor, more bool) {
	sh := c.stream.shards[c.shard]
	first := max(c.next, sh.trimmed)
	if len(got.Records) > 0 { // expired records may still be there, but never come back
		for first < sh.kept && sh.records[first].data != string(got.Records[0].Data) {
			first++
		}
		if first > c.next {
			sh.trimmed = max(sh.trimmed, first)
		}
	} else {
		first = max(first, sh.kept)
	}
	end := first + len(got.Records)
	if end > len(sh.records) {
		m.Fatalf("%d records from %d on, of %d that were put", len(got.Records), first,
			len(sh.records))
	}
	for i, record := range got.Records {
		want := sh.records[first+i]
		if string(record.Data) != want.data || *record.PartitionKey != want.key ||
			*record.SequenceNumber != want.number ||
			!record.ApproximateArrivalTimestamp.Equal(want.arrival) {
			m.Fatalf("record %d from %d on is %q of key %q, %s, at %v; want %+v", i, first,
				record.Data, *record.PartitionKey, *record.SequenceNumber,
				record.ApproximateArrivalTimestamp, want)
		}
	}
	if limit != nil && len(got.Records) > int(*limit) {
		m.Fatalf("%d records, limit %d", len(got.Records), *limit)
	}
	if len(got.Records) == 0 && end < len(sh.records) {
		m.Fatalf("nothing from %d on, of %d records that have not expired", first,
			len(sh.records))
	}
	m.compareEnd(c, end, got)
	if got.NextShardIterator == nil {
		return next, false
	}
	return cursor{*got.NextShardIterator, c.stream, c.shard, end, m.now}, true
}

// compareEnd checks the fields of an answer about the rest of the shard. AWS may leave
// NextShardIterator for one call more at the end of a closed shard; runnel does not.
func (m *machine) compareEnd(c cursor, end int, got *kinesis.GetRecordsOutput) {
	sh := c.stream.shards[c.shard]
	tip := end == len(sh.records)
	if (*got.MillisBehindLatest == 0) != tip {
		m.Fatalf("%d ms behind after record %d of %d", *got.MillisBehindLatest, end,
			len(sh.records))
	}
	over := tip && !sh.closed.IsZero()
	if (got.NextShardIterator == nil) != over {
		m.Fatalf("the next iterator is %q after record %d of %d, shard closed %v",
			aws.ToString(got.NextShardIterator), end, len(sh.records), sh.closed)
	}
	children := []string{}
	for _, child := range got.ChildShards {
		children = append(children, *child.ShardId)
	}
	want := []string{}
	if over {
		want = append(want, c.stream.children(c.shard)...)
	}
	if !slices.Equal(children, want) {
		m.Fatalf("child shards %q, want %q", children, want)
	}
}

// readAll reads every shard from its trim horizon to its end.
func (m *machine) readAll() {
	for _, st := range m.streams {
		if status := st.status(m.now); status == "CREATING" || status == "DELETING" {
			continue
		}
		for index := range st.shards {
			if !st.visible(index) {
				continue
			}
			got, err := m.client.GetShardIterator(m.ctx, &kinesis.GetShardIteratorInput{
				StreamName: aws.String(st.name), ShardId: aws.String(shardID(index)),
				ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
			})
			m.expect("iterator for all of "+st.name, err, "")
			c, more := cursor{*got.ShardIterator, st, index, 0, m.now}, true
			for end := -1; more && c.next != end; {
				end = c.next
				in := &kinesis.GetRecordsInput{ShardIterator: aws.String(c.text)}
				read, err := m.client.GetRecords(m.ctx, in)
				m.expect(fmt.Sprintf("read all of %s %d", st.name, index), err, "")
				c, more = m.compare(c, nil, read)
			}
		}
	}
}
