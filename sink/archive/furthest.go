package archive

import (
	"context"
	"math/big"
	"slices"

	"github.com/runnel-stream/runnel"
)

// furthest returns the previous end of the last link that the names in the shard's folder show. A
// store that returns all names at once is asked once, and another one by bisection over the
// sequence numbers: about twice their binary digits at most, 2 x 186 for Kinesis, whatever the
// number of links. some is false if there is no link.
func (c chain) furthest(ctx context.Context) (last runnel.Position, some bool, err error) {
	last, some, more, err := c.after(ctx, "")
	if err != nil || !some {
		return last, false, err
	}
	low := number(last)
	digits := max(kinesisDigits, len(low.String()))
	high := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	for more {
		name := last.SortText() + extension
		middle := new(big.Int).Add(low, high)
		middle.Rsh(middle, 1)
		if middle.Cmp(low) > 0 {
			name = runnel.Position{Sequence: runnel.SequenceNumber(middle.String())}.SortText()
		}
		next, found, others, err := c.after(ctx, name)
		switch {
		case err != nil:
			return last, false, err
		case found && last.Less(next):
			last, low, more = next, number(next), others
		case middle.Cmp(low) > 0:
			high = middle
		default:
			more = false
		}
	}
	return last, true, nil
}

// kinesisDigits is the number of decimal digits of Kinesis' sequence numbers.
const kinesisDigits = 56

// after returns the last link of the names behind a name that the store returns together, and
// whether others follow. Names of other objects are left out.
func (c chain) after(
	ctx context.Context, name string,
) (last runnel.Position, some, more bool, err error) {
	names, more, err := c.store.After(ctx, c.folder(), name)
	if err != nil {
		return last, false, false, err
	}
	for _, base := range slices.Backward(names) {
		if previous, err := parseObject(base); err == nil {
			return previous, true, more, nil
		}
	}
	return last, false, more, nil
}

// number returns the sequence number of a position; 0 for the start.
func number(at runnel.Position) *big.Int {
	n, ok := new(big.Int).SetString(string(at.Sequence), 10)
	if !ok {
		return new(big.Int)
	}
	return n
}
