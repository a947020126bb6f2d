package lease

import (
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// A row as the KCL 2.7 writes it.
func javaRow() item {
	return item{
		attrKey: str("shardId-000000000002"), attrOwner: str("java-1"), attrCounter: num(7),
		attrCheckpoint: str("49590338271490256608559692538361571095"), attrSub: num(4),
		attrSwitches: num(1),
		attrParents:  set([]runnel.ShardID{"shardId-000000000001", "shardId-000000000000"}),
		attrPending:  str("49590338271490256608559692538361571096"), attrPendingSub: num(0),
		attrPendingState: &types.AttributeValueMemberB{Value: []byte("state")},
		attrStartingHash: str("0"), attrEndingHash: str(keyspace.Max().String()),
	}
}

func TestDecodeJavaRow(t *testing.T) {
	got, err := decode(javaRow())
	want := Lease{
		Key: "shardId-000000000002", Owner: "java-1", Counter: 7,
		Checkpoint: runnel.Position{
			Sequence: "49590338271490256608559692538361571095", Sub: 4,
		},
		OwnerSwitches: 1,
		Parents:       []runnel.ShardID{"shardId-000000000000", "shardId-000000000001"},
		Pending:       runnel.Position{Sequence: "49590338271490256608559692538361571096"},
		PendingState:  []byte("state"),
		Range:         new(keyspace.All()),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// Rows that are no lease, or that contain an implausible value, are reported with the attribute's
// name.
func TestDecodeRefuses(t *testing.T) {
	for attribute, value := range map[string]types.AttributeValue{
		attrKey:          nil,
		attrCounter:      str("7"),
		attrCheckpoint:   str("trim"),
		attrSub:          num(-1),
		attrSwitches:     &types.AttributeValueMemberN{Value: "1.5"},
		attrStartingHash: str("x"),
		attrEndingHash:   str("340282366920938463463374607431768211456"),
		attrStreamName:   str("123456789012:orders:1700000000"),
		attrFrom:         str("yesterday"),
		attrPending:      str("?"),
		attrEntity:       str("LEADER"),
		attrOwner:        num(7),
		attrParents:      str("shardId-000000000001"),
		attrChildren:     &types.AttributeValueMemberL{},
		attrToken:        num(1),
		attrStream:       &types.AttributeValueMemberNULL{Value: true},
		attrHold:         num(1),
	} {
		row := javaRow()
		if row[attribute] = value; value == nil {
			delete(row, attribute)
		}
		if l, err := decode(row); err == nil {
			t.Errorf("%s = %v: decoded %+v", attribute, value, l)
		}
	}
}

func TestProcessed(t *testing.T) {
	for word, want := range map[runnel.SequenceNumber]runnel.Position{
		runnel.TrimHorizon: runnel.Start(), runnel.Latest: runnel.Start(),
		runnel.AtTimestamp: runnel.Start(), runnel.ShardEnd: runnel.End(),
		"77": {Sequence: "77"},
	} {
		l := Lease{Checkpoint: runnel.Position{Sequence: word}}
		if got := l.Processed(); got != want || l.Ended() != (want == runnel.End()) {
			t.Errorf("%s: %v, %v", word, got, l.Ended())
		}
	}
}

// FuzzDecode feeds rows with attributes of any type and content. decode must not panic, and every
// accepted row must survive encode.
func FuzzDecode(f *testing.F) {
	f.Add("shardId-000000000000", "7", "TRIM_HORIZON", "0", "p", "0", "1", uint16(0))
	f.Add("k", "-1", "49590338271490256608559692538361571095", "4", "", "", "", uint16(0xffff))
	f.Fuzz(func(t *testing.T, key, counter, checkpoint, sub, parent, low, high string, kinds uint16) {
		value := func(bit int, s string) types.AttributeValue {
			switch kinds >> bit & 3 {
			case 0:
				return str(s)
			case 1:
				return &types.AttributeValueMemberN{Value: s}
			case 2:
				return &types.AttributeValueMemberSS{Value: []string{s}}
			default:
				return &types.AttributeValueMemberN{Value: counter}
			}
		}
		row := item{
			attrKey: str(key), attrCounter: &types.AttributeValueMemberN{Value: counter},
			attrCheckpoint: value(0, checkpoint), attrSub: value(2, sub),
			attrParents: value(4, parent), attrStartingHash: value(6, low),
			attrEndingHash: value(8, high), attrFrom: value(10, sub),
		}
		l, err := decode(row)
		if err != nil {
			return
		}
		l.From = l.From.Truncate(time.Millisecond)
		if len(l.Parents) == 1 && l.Parents[0] == "" {
			return // a set of an empty text, which DynamoDB does not have
		}
		back, err := decode(encode(l))
		if err != nil || !reflect.DeepEqual(back, l) {
			t.Fatalf("%+v came back as %+v, %v", l, back, err)
		}
	})
}
