package runnel

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// SequenceNumber is a record's number within its shard: a decimal integer without leading
// zeros, of up to 129 digits. It is opaque but for its order, and numbers of different shards
// are not compared: AWS does not promise that they are unique across shards.
type SequenceNumber string

// The words that a checkpoint has in place of a sequence number, as the KCL writes them.
const (
	TrimHorizon SequenceNumber = "TRIM_HORIZON" // from the oldest record on
	Latest      SequenceNumber = "LATEST"       // from now on
	AtTimestamp SequenceNumber = "AT_TIMESTAMP" // from a configured time on
	ShardEnd    SequenceNumber = "SHARD_END"    // everything: the shard is closed and done
)

// IsNumber reports whether s is a sequence number rather than empty or one of the words above.
func (s SequenceNumber) IsNumber() bool {
	if s == "" || len(s) > maxDigits || (s[0] == '0' && len(s) > 1) {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

const maxDigits = 129 // of a sequence number: the API's pattern 0|([1-9]\d{0,128})

// Compare orders two sequence numbers of one shard: by length, then bytewise, which for
// decimals without leading zeros is their numeric order.
func (s SequenceNumber) Compare(other SequenceNumber) int {
	if len(s) != len(other) {
		return cmp.Compare(len(s), len(other))
	}
	return strings.Compare(string(s), string(other))
}

// Position is a place in a shard: that of a record, or, as the end of something, everything up
// to and including that record. The zero value, Start, is before every record; End is after
// every record of a closed shard.
type Position struct {
	// Sequence is the Kinesis record's number; "" in Start, ShardEnd in End.
	Sequence SequenceNumber
	// Sub is the user record's place inside an aggregated Kinesis record, from 0 on; 0 where
	// the record is not an aggregate.
	Sub int64
}

// Start returns the position before every record, which is the zero Position.
func Start() Position { return Position{} }

// End returns the position after every record of a closed shard.
func End() Position { return Position{Sequence: ShardEnd} }

// ErrPositionSyntax is returned for a text or a position that no record can have.
var ErrPositionSyntax = errors.New("not a position in a shard")

// Compare is the total order on the positions of one shard: Start, then by sequence number
// and sub-sequence number, then End.
func (p Position) Compare(other Position) int {
	if rank := cmp.Compare(p.rank(), other.rank()); rank != 0 {
		return rank
	}
	if order := p.Sequence.Compare(other.Sequence); order != 0 {
		return order
	}
	return cmp.Compare(p.Sub, other.Sub)
}

func (p Position) rank() int {
	switch p.Sequence {
	case "":
		return 0
	case ShardEnd:
		return 2
	default:
		return 1
	}
}

// Less reports whether p is before other.
func (p Position) Less(other Position) bool { return p.Compare(other) < 0 }

// String returns the position for people: "start", "end", the sequence number, or
// "number/sub" inside an aggregate.
func (p Position) String() string {
	switch {
	case p == Start():
		return "start"
	case p == End():
		return "end"
	case p.Sub == 0:
		return string(p.Sequence)
	default:
		return fmt.Sprintf("%s/%d", p.Sequence, p.Sub)
	}
}

// SortText returns the position as text whose bytewise order is the positions' order, fit for the
// name of an object or a file: "LLL-DIGITS-SUB", with the number of digits in three and the
// sub-sequence number in ten. Start is "001-0-0000000000" and End is "end".
func (p Position) SortText() string {
	switch p.Sequence {
	case "":
		return "001-0-0000000000"
	case ShardEnd:
		return "end"
	default:
		return fmt.Sprintf("%03d-%s-%010d", len(p.Sequence), p.Sequence, p.Sub)
	}
}

// IsRecord reports whether p can be the position of a record: it has a number, and SortText orders
// it.
func (p Position) IsRecord() bool {
	const maxSub = 9_999_999_999 // ten digits, as in SortText
	return p.Sequence.IsNumber() && p.Sub >= 0 && p.Sub <= maxSub &&
		(p.Sequence != "0" || p.Sub > 0) // the text of Start
}

// ParsePosition reads what SortText wrote. Anything else is an error that wraps ErrPositionSyntax.
func ParsePosition(text string) (Position, error) {
	if text == "end" {
		return End(), nil
	}
	parts := strings.Split(text, "-")
	if len(parts) == 3 {
		sub, err := strconv.ParseInt(parts[2], 10, 64)
		p := Position{Sequence: SequenceNumber(parts[1]), Sub: sub}
		if p.Sequence == "0" && sub == 0 {
			p = Start()
		}
		if err == nil && (p == Start() || p.Sequence.IsNumber()) && p.SortText() == text {
			return p, nil
		}
	}
	return Position{}, fmt.Errorf("%w: %q", ErrPositionSyntax, text)
}
