package archive

import (
	"context"
	"math/big"
	"strings"

	"github.com/runnel-stream/runnel"
)

// furthest returns the previous end of the last link that the names in the shard's folder show. A
// store that lists a folder at once does so; another is asked by bisection, for one name at a time:
// at most twice the binary digits of a sequence number, 2 x 186 for Kinesis, whatever the number of
// links. some is false if there is no link.
func (c chain) furthest(ctx context.Context) (previous runnel.Position, some bool, err error) {
	if dir, ok := c.store.(*DirStore); ok {
		return c.lastListed(ctx, dir)
	}
	previous, some, err = c.after(ctx, "")
	if err != nil || !some {
		return previous, false, err
	}
	low := number(previous)
	high := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(56, int64(len(low.String())))), nil)
	for {
		next, more, err := c.after(ctx, previous.SortText()+extension)
		if err != nil || !more {
			return previous, true, err
		}
		// There is a link behind previous. Bisect until one is found at or behind the middle, which
		// then takes its place.
		for previous, low = next, number(next); ; {
			middle := new(big.Int).Add(low, high)
			if middle.Rsh(middle, 1); middle.Cmp(low) <= 0 {
				break
			}
			at := runnel.Position{Sequence: runnel.SequenceNumber(middle.String())}
			next, more, err := c.after(ctx, at.SortText())
			if err != nil {
				return previous, false, err
			}
			if more {
				previous, low = next, number(next)
				break
			}
			high = middle
		}
	}
}

// after returns the first link behind a name. Other objects count as the end of the links.
func (c chain) after(ctx context.Context, name string) (runnel.Position, bool, error) {
	base, err := c.store.After(ctx, c.folder(), name)
	if err != nil || base == "" {
		return runnel.Position{}, false, err
	}
	previous, err := parseObject(base)
	return previous, err == nil, nil
}

func (c chain) lastListed(ctx context.Context, dir *DirStore) (runnel.Position, bool, error) {
	listing, err := dir.List(ctx, c.folder())
	for i := len(listing.Objects) - 1; i >= 0; i-- {
		if previous, err := parseObject(listing.Objects[i]); err == nil {
			return previous, true, nil
		}
	}
	return runnel.Position{}, false, err
}

// number returns the sequence number of a position; 0 for the start.
func number(at runnel.Position) *big.Int {
	n, ok := new(big.Int).SetString(strings.TrimSpace(string(at.Sequence)), 10)
	if !ok {
		return new(big.Int)
	}
	return n
}
