package kinesis

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/budget"
	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
)

func TestIteratorTypes(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	var numbers []string
	for i := range 5 {
		_, number := n.put("orders", "k", fmt.Sprint(i))
		numbers = append(numbers, number)
		clock.advance(10 * time.Second)
	}
	start := newTestClock().ms.Load()
	seconds := func(ms int64) float64 { return float64(start+ms) / 1000 }
	first := n.list("orders")[0].SequenceNumberRange.StartingSequenceNumber
	latest := n.iterator("orders", "0", "LATEST")
	n.put("orders", "k", "5")
	for _, c := range []struct {
		iterator, want string
	}{
		{n.iterator("orders", "0", "TRIM_HORIZON"), "0 1 2 3 4 5"},
		{latest, "5"}, // resolved when it was made, not when it is used
		{n.iterator("orders", "0", "LATEST"), ""},
		{n.iterator("orders", "0", "AT_SEQUENCE_NUMBER", "StartingSequenceNumber", numbers[2]), "2 3 4 5"},
		{n.iterator("orders", "0", "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber", numbers[2]), "3 4 5"},
		{n.iterator("orders", "0", "AT_SEQUENCE_NUMBER", "StartingSequenceNumber", first), "0 1 2 3 4 5"},
		{n.iterator("orders", "0", "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber", first), "0 1 2 3 4 5"},
		{n.iterator("orders", "0", "AT_TIMESTAMP", "Timestamp", seconds(20_000)), "2 3 4 5"},
		{n.iterator("orders", "0", "AT_TIMESTAMP", "Timestamp", seconds(20_001)), "3 4 5"},
		{n.iterator("orders", "0", "AT_TIMESTAMP", "Timestamp", 0), "0 1 2 3 4 5"},
		{n.iterator("orders", "0", "AT_TIMESTAMP", "Timestamp", seconds(50_000)), "5"},
		{`"` + latest + `"`, "5"}, // quoted, as AWS takes it
		{latest, "5"},             // used again
	} {
		if got := n.get(c.iterator, 0).data(); got != c.want {
			t.Errorf("the iterator reads %q, want %q", got, c.want)
		}
	}
}

func TestIteratorErrors(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 2)
	n.create("other", 2)
	shard, number := n.put("orders", "k", "x")
	parsed, _ := parseNumber(number)
	in := func(shard, kind string, more ...any) m {
		in := m{"StreamName": "orders", "ShardId": shard, "ShardIteratorType": kind}
		for i := 0; i < len(more); i += 2 {
			in[more[i].(string)] = more[i+1]
		}
		return in
	}
	const (
		seq    = "StartingSequenceNumber"
		either = "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and " +
			"StartingSequenceNumber or (2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. " +
			"Request specified "
	)
	next := parsed
	next.index++
	elsewhere := parsed
	elsewhere.created += 100
	now := clock.ms.Load()
	for _, c := range []struct {
		in         m
		code, text string
	}{
		{
			in(shard, "AT_SEQUENCE_NUMBER"), codeInvalid,
			either + "AT_SEQUENCE_NUMBER and no StartingSequenceNumber.",
		},
		{
			in(shard, "LATEST", seq, number), codeInvalid,
			either + "LATEST and also a StartingSequenceNumber.",
		},
		{in(shard, "AT_TIMESTAMP"), codeInvalid, "timestamp"},
		{in(shard, "AT_TIMESTAMP", "Timestamp", float64(now+1)/1000), codeInvalid, fmt.Sprintf(
			"The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. "+
				"timestampInMillis: %d, currentTimestampInMillis: %d", now+1, now)},
		{in(shardid.Of(1-parsed.shard), "AT_SEQUENCE_NUMBER", seq, number), codeInvalid, fmt.Sprintf(
			"Invalid StartingSequenceNumber. It encodes %s, while it was used in a call to a shard "+
				"with %s", shard, shardid.Of(1-parsed.shard))},
		{
			in(shard, "AT_SEQUENCE_NUMBER", seq, elsewhere.String()), codeInvalid,
			"is invalid because it did not come from this stream.",
		},
		{
			in(shard, "AT_SEQUENCE_NUMBER", seq, next.String()), codeInvalid,
			"StartingSequenceNumber " + next.String() + " used in GetShardIterator on shard " + shard +
				" in stream orders under account 000000000000 is invalid.",
		},
		{in(shard, "AT_SEQUENCE_NUMBER", seq, "9"+number), codeInvalid, "is invalid."},
		{in(shard, "AT_SEQUENCE_NUMBER", seq, "x"), codeValidation, `0|([1-9]\d{0,128})`},
		{
			in("shardId-000000000000", "AT_SEQUENCE_NUMBER", seq, "0"), codeInvalid,
			"did not come from this stream",
		},
		{in("shardId-7", "LATEST"), codeNotFound, "Shard shardId-000000000007 in stream orders " +
			"under account 000000000000 does not exist"},
		{
			in("a-2147483648", "LATEST"), codeNotFound,
			"Could not find shard a-2147483648 in stream orders under account 000000000000.",
		},
		{in(shard, "SOMETIMES"), codeValidation, "Value 'SOMETIMES' at 'shardIteratorType' failed to " +
			"satisfy constraint: Member must satisfy enum value set: [AFTER_SEQUENCE_NUMBER, LATEST, " +
			"AT_TIMESTAMP, AT_SEQUENCE_NUMBER, TRIM_HORIZON]"},
	} {
		n.refused("GetShardIterator", c.in, c.code, c.text)
	}
	n.iterator("orders", "a-"+shard[len("shardId-"):], "LATEST")
	n.refused("GetRecords", m{"ShardIterator": "AAAA"}, codeInvalid, "Invalid ShardIterator.")
	iterator := n.iterator("orders", shard, "LATEST")
	other := "BBBB" + iterator[4:] // of another mark
	n.refused("GetRecords", m{"ShardIterator": other}, codeInvalid, "Invalid ShardIterator.")
	other = iterator[:100] + string(iterator[100]^1) + iterator[101:]
	n.refused("GetRecords", m{"ShardIterator": other}, codeInvalid, "Invalid ShardIterator.")
	n.refused("GetRecords", m{
		"ShardIterator": iterator,
		"StreamARN":     "arn:aws:kinesis:us-east-1:000000000000:stream/other",
	}, codeInvalid, "StreamARN")
	n.refused("GetRecords", m{"ShardIterator": iterator, "Limit": 10_001}, codeValidation, "10000")
}

func TestIteratorExpires(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	clock.advance(5 * time.Minute)
	next := n.get(iterator, 0).NextShardIterator
	clock.advance(time.Millisecond)
	n.refused("GetRecords", m{"ShardIterator": iterator}, codeExpired,
		"Iterator expired. The iterator was created at time Sun Mar 01 12:00:00 UTC 2026 while right "+
			"now it is Sun Mar 01 12:05:00 UTC 2026 which is further in the future than the tolerated "+
			"delay of 300000 milliseconds.")
	n.get(next, 0)
	ctx := withFaults(n.ctx, fault.Decision{ExpireIterator: true})
	_, err := n.raw(ctx, "GetRecords", `{"ShardIterator":"`+next+`"}`)
	wantError(t, err, codeExpired, "Iterator expired.")
}

func TestGetPages(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	for i := range 5 {
		n.put("orders", "k", fmt.Sprint(i))
		clock.advance(time.Second)
	}
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	var pages []string
	for range 4 {
		answer := n.get(iterator, 2)
		pages = append(pages, fmt.Sprint(answer.data(), " ", answer.MillisBehindLatest))
		if answer.NextShardIterator == "" || answer.NextShardIterator == iterator {
			t.Fatal("there is no fresh iterator")
		}
		iterator = answer.NextShardIterator
	}
	// Behind is the age of the last record that was returned, unless it is the newest.
	if got := fmt.Sprint(pages); got != "[0 1 4000 2 3 2000 4 0  0]" {
		t.Errorf("the pages are %s", got)
	}
	n.put("orders", "k", "5")
	if got := n.get(iterator, 2).data(); got != "5" {
		t.Errorf("the iterator goes on with %q", got)
	}
}

// The answer's exact form: no EncryptionType on an unencrypted stream, no exponent.
func TestGetForm(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	n.put("orders", `a"b`, "data")
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	answer, err := n.Serve(n.ctx, callOf("GetRecords", `{"ShardIterator":"`+iterator+`"}`))
	n.must(err)
	var number, next string
	_, err = fmt.Sscanf(string(answer.Body), `{"MillisBehindLatest":0,"NextShardIterator":%q,"Records":[`+
		`{"ApproximateArrivalTimestamp":1772366400.000,"Data":"ZGF0YQ==","PartitionKey":"a\"b",`+
		`"SequenceNumber":%q}]}`, &next, &number)
	if err != nil {
		t.Errorf("the answer is %s: %v", answer.Body, err)
	}
}

// An answer holds at most 10 MiB, and at least one record.
func TestGetBytes(t *testing.T) {
	n := newNode(t)
	n.call("CreateStream", m{"StreamName": "large", "ShardCount": 1, "MaxRecordSizeInKiB": 10240})
	for _, size := range []int{4 << 20, 4 << 20, 4 << 20, 10<<20 - 1, 1} {
		n.must(n.putDirect("large", entryOf(size)))
	}
	var counts []int
	it := iterator{stream: "large", created: n.streams.all()[0].Created}
	for range 4 {
		r, err := n.read(n.ctx, here, it, &getRecordsInput{})
		n.must(err)
		counts = append(counts, len(r.records))
		it.place = r.place
	}
	if got := fmt.Sprint(counts); got != "[2 1 1 1]" {
		t.Errorf("the answers hold %s records", got)
	}
}

// While other answers hold most of the memory, an answer has fewer records, and waits for none but
// the first; later ones are as long as ever.
func TestGetWithLittleMemory(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	for range 6 {
		n.must(n.putDirect("orders", entryOf(1<<20-10)))
	}
	memory := budget.New(64<<20, 0)
	it := iterator{stream: "orders", created: n.streams.all()[0].Created}
	get := func(others int) int {
		var other, own budget.Share
		memory.Open(&other, nil)
		memory.Open(&own, nil)
		n.must(other.Grow(n.ctx, others))
		other.Settle()
		r, err := n.read(n.ctx, here, it, &getRecordsInput{sending: &own})
		n.must(err)
		other.Release()
		if memory.Used() < int64(len(r.records))<<20 {
			t.Errorf("%d records have %d bytes of memory", len(r.records), memory.Used())
		}
		own.Release()
		return len(r.records)
	}
	if alone, beside := get(0), get(58<<20); alone < 2 || beside != 1 {
		t.Errorf("%d records alone, %d beside others' answers; want more than 1, and 1", alone, beside)
	}
}

// A read waits for memory for the next record, and not for the largest that the stream may have.
func TestGetWaitsForTheNextRecordAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.create("orders", 1)
		n.call("UpdateMaxRecordSize", m{"StreamARN": ordersARN, "MaxRecordSizeInKiB": 10 << 10})
		time.Sleep(time.Minute)
		n.must(n.putDirect("orders", entryOf(1<<20-10)))
		memory, others, own := budget.New(64<<20, 0), new(budget.Share), new(budget.Share)
		memory.Open(others, nil)
		memory.Open(own, nil)
		n.must(others.Grow(n.ctx, 58<<20))
		others.Settle()
		time.AfterFunc(time.Hour, others.Release)
		it := iterator{stream: "orders", created: n.streams.all()[0].Created}
		began := time.Now()
		r, err := n.read(n.ctx, here, it, &getRecordsInput{sending: own})
		n.must(err)
		if passed := time.Since(began); len(r.records) != 1 || passed > 0 {
			t.Errorf("%d records after %v, want 1 at once", len(r.records), passed)
		}
		own.Release()
		<-time.After(2 * time.Hour)
		n.stop()
	})
}

// fullMemory makes the streams small and large, and returns a budget of which others hold all for some
// time.
func (n *node) fullMemory(held time.Duration) *budget.Budget {
	n.t.Helper()
	n.create("small", 1)
	n.create("large", 1)
	for range 100 {
		n.must(n.putDirect("small", entryOf(50)))
	}
	n.must(n.putDirect("large", entryOf(100<<10)))
	memory, others := budget.New(64<<20, 0), new(budget.Share)
	memory.Open(others, nil)
	n.must(others.Grow(n.ctx, 64<<20))
	others.Settle()
	time.AfterFunc(held, others.Release)
	return memory
}

// While other answers hold all of the memory, small records come at once, some at a time, and large
// ones wait.
func TestReadsWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		memory := n.fullMemory(time.Hour)
		read := func(stream string) (records int, own *budget.Share) {
			own = new(budget.Share)
			memory.Open(own, nil)
			st := n.streams.all()[0]
			if st.Name != stream {
				st = n.streams.all()[1]
			}
			it := iterator{stream: stream, created: st.Created}
			r, err := n.read(n.ctx, here, it, &getRecordsInput{sending: own})
			n.must(err)
			return len(r.records), own
		}
		began := time.Now()
		if records, own := read("small"); records != fewRecords.records || own.IsLarge() {
			t.Errorf("%d small records, with memory: %v", records, own.IsLarge())
		}
		if passed := time.Since(began); passed > 0 {
			t.Errorf("small records waited for %v", passed)
		}
		records, own := read("large")
		if passed := time.Since(began); records != 1 || passed != time.Hour {
			t.Errorf("%d large records after %v, want 1 once there is memory", records, passed)
		}
		own.Release()
		n.stop()
	})
}

// The same holds for the events of a subscription.
func TestEventsWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		memory := n.fullMemory(time.Minute)
		for _, c := range []struct {
			stream  string
			records int
			after   time.Duration
		}{{"small", fewRecords.records, 0}, {"large", 1, time.Minute}} {
			s := n.subscribe(n.register(c.stream, "c"), "0", m{"Type": "TRIM_HORIZON"})
			own := new(budget.Share)
			memory.Open(own, nil)
			s.events.(*subscription).sending = own
			began := time.Now()
			e := s.next()
			if passed := time.Since(began); len(e.Records) != c.records || passed != c.after {
				t.Errorf("%s: %d records after %v, want %d after %v", c.stream, len(e.Records), passed,
					c.records, c.after)
			}
			s.events.Close()
			own.Release()
		}
		n.stop()
	})
}

// At the end of a closed shard, and only there, the children take the iterator's place.
func TestGetShardEnd(t *testing.T) {
	n := newNode(t)
	n.create("orders", 2)
	n.call("PutRecord", m{
		"StreamName": "orders", "PartitionKey": "k", "Data": []byte("one"),
		"ExplicitHashKey": "5",
	})
	n.call("PutRecord", m{
		"StreamName": "orders", "PartitionKey": "k", "Data": []byte("two"),
		"ExplicitHashKey": "5",
	})
	open := n.iterator("orders", "0", "LATEST")
	n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "77"})
	parent := n.list("orders")[0]
	first := n.get(n.iterator("orders", "0", "TRIM_HORIZON"), 1)
	if first.data() != "one" || first.NextShardIterator == "" || first.ChildShards != nil {
		t.Errorf("before the end the shard answers %+v", first)
	}
	want := "[{shardId-000000000002 [shardId-000000000000]} {shardId-000000000003 [shardId-000000000000]}]"
	for name, iterator := range map[string]string{
		"the last record":   first.NextShardIterator,
		"LATEST while open": open,
		"LATEST":            n.iterator("orders", "0", "LATEST"),
		"after the end number": n.iterator("orders", "0", "AFTER_SEQUENCE_NUMBER",
			"StartingSequenceNumber", parent.SequenceNumberRange.EndingSequenceNumber),
	} {
		last := n.get(iterator, 0)
		if last.NextShardIterator != "" || fmt.Sprint(last.ChildShards) != want ||
			last.MillisBehindLatest != 0 {
			t.Errorf("from %s on the end is %+v", name, last)
		}
	}
	n.call("MergeShards", m{"StreamName": "orders", "ShardToMerge": "3", "AdjacentShardToMerge": "1"})
	_, last := n.drain("orders", "1")
	want = "[{shardId-000000000004 [shardId-000000000003 shardId-000000000001]}]"
	if got := fmt.Sprint(last.ChildShards); got != want {
		t.Errorf("a merged shard's children are %s", got)
	}
	open = n.iterator("orders", "4", "LATEST")
	if answer := n.get(open, 0); answer.NextShardIterator == "" || answer.ChildShards != nil {
		t.Errorf("an open shard ends: %+v", answer)
	}
}

// A closed shard ends also when all of its records were trimmed, and an old iterator reads
// from the oldest record.
func TestGetTrimmed(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	_, number := n.put("orders", "k", "old")
	clock.advance(23*time.Hour + 58*time.Minute)
	iterator := n.iterator("orders", "0", "AT_SEQUENCE_NUMBER", "StartingSequenceNumber", number)
	n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "9"})
	clock.advance(3 * time.Minute)
	n.sweeper.sweep(n.ctx)
	answer := n.get(iterator, 0)
	if len(answer.Records) != 0 || len(answer.ChildShards) != 2 {
		t.Errorf("a trimmed closed shard answers %+v", answer)
	}
	again := n.iterator("orders", "0", "AT_SEQUENCE_NUMBER", "StartingSequenceNumber", number)
	if answer := n.get(again, 0); len(answer.ChildShards) != 2 {
		t.Errorf("from a trimmed number on the shard answers %+v", answer)
	}
}

func callOf(operation, body string) *wire.Call {
	return &wire.Call{
		Service: "kinesis", Operation: operation, Body: []byte(body), World: here,
	}
}
