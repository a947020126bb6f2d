package awscbor_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/runneltest"
)

// member is a member of an object, in an order of its own, and moment a time in ms.
type (
	member struct {
		name  string
		value any
	}
	members []member
	moment  int64
)

// MarshalJSON has a time in seconds.
func (m moment) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", int64(m)/1000, int64(m)%1000), nil
}

// MarshalJSON keeps the order.
func (m members) MarshalJSON() ([]byte, error) {
	var fields []string
	for _, f := range m {
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		fields = append(fields, fmt.Sprintf("%q:%s", f.name, value))
	}
	return []byte("{" + strings.Join(fields, ",") + "}"), nil
}

// appendCBOR writes a value in any of the legal ways: draw makes the choices.
func appendCBOR(dst []byte, value any, draw func(n int) int) []byte {
	head := func(major byte, n uint64) {
		switch {
		case n < 24 && draw(4) > 0:
			dst = append(dst, major<<5|byte(n))
		case n < 1<<8 && draw(4) > 0:
			dst = append(dst, major<<5|24, byte(n))
		case n < 1<<16 && draw(4) > 0:
			dst = binary.BigEndian.AppendUint16(append(dst, major<<5|25), uint16(n))
		case n < 1<<32 && draw(4) > 0:
			dst = binary.BigEndian.AppendUint32(append(dst, major<<5|26), uint32(n))
		default:
			dst = binary.BigEndian.AppendUint64(append(dst, major<<5|27), n)
		}
	}
	text := func(major byte, s string) {
		if draw(3) > 0 {
			head(major, uint64(len(s)))
			dst = append(dst, s...)
			return
		}
		dst = append(dst, major<<5|31)
		for _, chunk := range strings.SplitAfter(s, "a") {
			head(major, uint64(len(chunk)))
			dst = append(dst, chunk...)
		}
		dst = append(dst, 0xff)
	}
	open := func(major byte, n int) (end []byte) {
		if draw(2) == 0 {
			dst = append(dst, major<<5|31)
			return []byte{0xff}
		}
		head(major, uint64(n))
		return nil
	}
	for value != nil && draw(8) == 0 {
		head(6, uint64(draw(70_000)))
	}
	switch value := value.(type) {
	case string:
		text(3, value)
	case []byte:
		text(2, string(value))
	case moment:
		head(6, 1)
		head(0, uint64(value))
	case []any:
		end := open(4, len(value))
		for _, element := range value {
			dst = appendCBOR(dst, element, draw)
		}
		dst = append(dst, end...)
	case members:
		end := open(5, len(value))
		for _, m := range value {
			text(3, m.name)
			dst = appendCBOR(dst, m.value, draw)
		}
		dst = append(dst, end...)
	default:
		encoded, err := cbor.Marshal(value)
		if err != nil {
			panic(err)
		}
		dst = append(dst, encoded...)
	}
	return dst
}

var (
	anyText   = rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z]{0,12}`), rapid.StringMatching(`[0-9]{56}`), rapid.StringN(0, 3000, -1))
	anyData   = rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.SliceOfN(rapid.Byte(), 0, 5000), rapid.Just([]byte{}))
	anyNumber = rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 100_000))
	// The SDK's times in JSON are a millisecond off in some years, as 2004 and 2038.
	anyArrival = rapid.Map(rapid.Int64Range(11e11, 21e11), func(ms int64) moment { return moment(ms) })
	unknown    = rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any](1.5), rapid.Map(anyText, func(s string) any { return s }),
		rapid.Just[any]([]any{1, "two", []any{members{{"Records", nil}}}}), rapid.Just[any](members{{"Records", []any{}}}),
	)
)

// anyObject draws some of the members, in any order, a few of them null, and some unknown ones.
func anyObject(t *rapid.T, all members) members {
	var some members
	for _, m := range all {
		switch rapid.IntRange(0, 12).Draw(t, m.name) {
		case 0:
		case 1:
			some = append(some, member{m.name, nil})
		default:
			some = append(some, m)
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "more") == 0 {
		some = append(some, member{"New" + rapid.StringMatching(`[a-z]{0,30}`).Draw(t, "name"), unknown.Draw(t, "unknown")})
	}
	if len(some) == 0 {
		return some
	}
	return rapid.Permutation(some).Draw(t, "order")
}

func anyRecord(t *rapid.T) members {
	return anyObject(t, members{
		{"ApproximateArrivalTimestamp", anyArrival.Draw(t, "arrival")},
		{"Data", anyData.Draw(t, "data")},
		{"EncryptionType", rapid.SampledFrom([]string{"KMS", "NONE", "other"}).Draw(t, "encryption")},
		{"PartitionKey", anyText.Draw(t, "key")},
		{"SequenceNumber", anyText.Draw(t, "number")},
	})
}

func anyChild(t *rapid.T) members {
	var parents []any
	for range rapid.IntRange(0, 2).Draw(t, "parents") {
		parents = append(parents, anyText.Draw(t, "parent"))
	}
	return anyObject(t, members{
		{"ShardId", anyText.Draw(t, "shard")},
		{"ParentShards", append([]any{}, parents...)},
		{"HashKeyRange", anyObject(t, members{
			{"StartingHashKey", anyText.Draw(t, "from")}, {"EndingHashKey", anyText.Draw(t, "to")},
		})},
	})
}

func anyPage(t *rapid.T) members {
	records, children := []any{}, []any{}
	for range rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 60)).Draw(t, "records") {
		records = append(records, anyRecord(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "children") {
		children = append(children, anyChild(t))
	}
	return append(anyObject(t, members{
		{"Records", records}, {"ChildShards", children}, {"NextShardIterator", anyText.Draw(t, "iterator")},
	}), member{"MillisBehindLatest", anyNumber.Draw(t, "behind")})
}

// sameAs compares two pages, and the capacities of their data.
func sameAs(got, want *kinesis.GetRecordsOutput) error {
	for i, r := range got.Records {
		if len(r.Data) != cap(r.Data) {
			return fmt.Errorf("record %d has %d bytes and room for %d", i, len(r.Data), cap(r.Data))
		}
	}
	one, two := *got, *want
	one.ResultMetadata, two.ResultMetadata = middleware.Metadata{}, middleware.Metadata{}
	if len(one.Records) == len(two.Records) {
		for i := range one.Records {
			if first, second := one.Records[i], two.Records[i]; !reflect.DeepEqual(first, second) {
				return fmt.Errorf("record %d: %+v, want %+v", i, show(first), show(second))
			}
		}
	}
	if !reflect.DeepEqual(one, two) {
		return fmt.Errorf("%s, want %s", show(one), show(two))
	}
	return nil
}

func show(value any) string {
	text, err := json.Marshal(value)
	return fmt.Sprintf("%#v %.300s %v", value, text, err)
}

// A page in CBOR, in any legal encoding, is the page that the SDK reads in JSON. Later pages do not
// change it.
func TestSamePages(t *testing.T) {
	var kept []func() error
	rapid.Check(t, func(rt *rapid.T) {
		page := anyPage(rt)
		inJSON, err := json.Marshal(page)
		if err != nil {
			t.Fatal(err)
		}
		choices := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 64, 64).Draw(rt, "encoding")
		inCBOR := appendCBOR(nil, page, func(n int) int {
			choices = append(choices[1:], choices[0]*31+choices[63]&0xffff)
			return choices[0] & 0xfffff % n
		})
		length := rapid.SampledFrom([]int{0, -1}).Draw(rt, "length")
		f := &fake{
			t: t, inJSON: always(answer{status: 200, kind: typeJSON, body: string(inJSON)}),
			inCBOR: always(answer{status: 200, kind: typeCBOR + "; charset=x", body: string(inCBOR), length: length}),
		}
		sdk := f.client()
		want, err := sdk.GetRecords(t.Context(), input())
		if err != nil {
			rt.Fatal(err)
		}
		got, err := awscbor.New(sdk).GetRecords(t.Context(), input())
		if calls := f.took(); err != nil || calls != "json cbor" {
			rt.Fatalf("%s, %v, %x", calls, err, inCBOR)
		}
		kept = append(kept, func() error { return sameAs(got, want) })
		for _, page := range kept[max(0, len(kept)-3):] {
			if err := page(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// A page that is kept does not change when its body's memory is used again, nor when a user appends
// to its data.
func TestPagesDoNotShare(t *testing.T) {
	page := func(of byte) answer {
		var records []any
		for _, size := range []int{1, 2, 100, 511, 512, 513, 3000, 70_000} {
			records = append(records, object{
				"Data": bytes.Repeat([]byte{of}, size), "PartitionKey": strings.Repeat(string(rune(of)), size),
			})
		}
		return answer{status: 200, kind: typeCBOR, body: encode(t, object{"Records": records})}
	}
	f := &fake{t: t, inCBOR: func(call int) answer { return page(byte('a' + call)) }}
	client := awscbor.New(f.client())
	var kept []*kinesis.GetRecordsOutput
	for range 4 {
		out, err := client.GetRecords(t.Context(), input())
		if err != nil || len(out.Records) != 8 {
			t.Fatal(err)
		}
		for i := range out.Records {
			_ = append(out.Records[i].Data, "changed"...)
		}
		kept = append(kept, out)
	}
	for call, out := range kept {
		letter := string(rune('a' + call + 1))
		for _, r := range out.Records {
			if strings.Trim(string(r.Data), letter)+strings.Trim(*r.PartitionKey, letter) != "" {
				t.Errorf("a record of page %d has changed", call)
			}
		}
	}
}

// A repeated member counts by its last value, and numbers may be floats.
func TestRarities(t *testing.T) {
	at := cbor.Tag{Number: 1, Content: 1363896201.5}
	for _, c := range []struct {
		page any
		want kinesis.GetRecordsOutput
	}{
		{object{"MillisBehindLatest": 7.0}, kinesis.GetRecordsOutput{MillisBehindLatest: aws.Int64(7)}},
		{object{"MillisBehindLatest": -7}, kinesis.GetRecordsOutput{MillisBehindLatest: aws.Int64(-7)}},
		{object{"Records": []any{object{"ApproximateArrivalTimestamp": at}, object{}}}, kinesis.GetRecordsOutput{
			Records: []types.Record{{ApproximateArrivalTimestamp: aws.Time(time.UnixMilli(1363896201500).UTC())}, {}},
		}},
		{
			cbor.RawMessage("\xbf\x72MillisBehindLatest\x01\x72MillisBehindLatest\x02\xff"),
			kinesis.GetRecordsOutput{MillisBehindLatest: aws.Int64(2)},
		},
	} {
		f := &fake{t: t, inCBOR: always(answer{status: 200, kind: typeCBOR, body: encode(t, c.page)})}
		got, err := awscbor.New(f.client()).GetRecords(t.Context(), input())
		if err != nil {
			t.Error(err)
		} else if err := sameAs(got, &c.want); err != nil {
			t.Error(err)
		}
	}
}

// The decoder and the encoder know all members that the SDK has.
func TestMembers(t *testing.T) {
	for _, c := range []struct {
		of   any
		want []string
	}{
		{kinesis.GetRecordsOutput{}, []string{
			"Records", "ChildShards", "MillisBehindLatest", "NextShardIterator", "ResultMetadata",
		}},
		{types.Record{}, []string{
			"Data", "PartitionKey", "SequenceNumber", "ApproximateArrivalTimestamp", "EncryptionType",
		}},
		{types.ChildShard{}, []string{"HashKeyRange", "ParentShards", "ShardId"}},
		{kinesis.PutRecordsInput{}, []string{"Records", "DryRun", "StreamARN", "StreamId", "StreamName"}},
		{types.PutRecordsRequestEntry{}, []string{"Data", "ExplicitHashKey", "PartitionKey"}},
		{types.HashKeyRange{}, []string{"EndingHashKey", "StartingHashKey"}},
	} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(c.of)) {
			if field.IsExported() && !slices.Contains(c.want, field.Name) {
				t.Errorf("%T has a new member, %s: encode or decode it", c.of, field.Name)
			}
		}
	}
}

// The pages of a real server are the same in both encodings: records with and without encryption,
// data of every size, an empty page, and the end of a shard with its children.
func TestRealPages(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("s", 1))
	sdk := server.Kinesis()
	name := aws.String("s")
	put := func() {
		in := &kinesis.PutRecordsInput{StreamName: name}
		for _, size := range []int{0, 1, 23, 24, 100, 255, 256, 5000, 70_000} {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String(fmt.Sprint("schlüssel-🔑-", size)), Data: []byte(strings.Repeat("\x00\xffü", size)),
			})
		}
		if _, err := sdk.PutRecords(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	compare := func() (records, children int) {
		client := awscbor.New(sdk)
		in := begin(t, client)
		for in.ShardIterator != nil {
			got, err := client.GetRecords(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			want, err := sdk.GetRecords(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			records, children = records+len(got.Records), len(got.ChildShards)
			if in.ShardIterator = got.NextShardIterator; in.ShardIterator != nil {
				if want.NextShardIterator == nil {
					t.Fatal("only the page in JSON ends")
				}
				want.NextShardIterator, want.MillisBehindLatest = got.NextShardIterator, got.MillisBehindLatest
			}
			if err := sameAs(got, want); err != nil {
				t.Fatal(err)
			}
			if len(got.Records) == 0 {
				break
			}
		}
		return records, children
	}
	put()
	if records, _ := compare(); records != 9 {
		t.Errorf("%d records", records)
	}
	if _, err := sdk.StartStreamEncryption(t.Context(), &kinesis.StartStreamEncryptionInput{
		StreamName: name, EncryptionType: types.EncryptionTypeKms, KeyId: aws.String("alias/aws/kinesis"),
	}); err != nil {
		t.Fatal(err)
	}
	waiter := kinesis.NewStreamExistsWaiter(sdk, func(o *kinesis.StreamExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 10*time.Millisecond
	})
	active := func() {
		if err := waiter.Wait(t.Context(), &kinesis.DescribeStreamInput{StreamName: name}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	active()
	put()
	if _, err := sdk.SplitShard(t.Context(), &kinesis.SplitShardInput{
		StreamName: name, ShardToSplit: aws.String("shardId-000000000000"), NewStartingHashKey: aws.String("170141183460469231731687303715884105728"),
	}); err != nil {
		t.Fatal(err)
	}
	active()
	if records, children := compare(); records != 18 || children != 2 {
		t.Errorf("%d records, %d children", records, children)
	}
}
