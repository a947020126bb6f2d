package allocate

import (
	"strings"

	"github.com/runnel-stream/runnel/keyspace"
)

// Table returns the taken keys as text, grouped by the number of equal shards that first has a
// shard starting at the key: one line for each depth of halving.
//
//	Shards | Key distribution
//	-------+-----------------
//	1      |
//	2      | 64
//	4      | 32 96
//	8      | 16 80
//
// The key 0 is in the line of the single shard. The text has one entry for each key and at most 129
// lines of keys.
func (a *Allocator) Table() string {
	rows := [][]byte{nil}
	for r := range a.All() {
		depth := a.space.depth(r.Key)
		for len(rows) <= depth {
			rows = append(rows, nil)
		}
		rows[depth] = r.Key.AppendText(append(rows[depth], ' '))
	}
	label := func(depth int) string { return Space{size: powerOfTwo(uint(depth))}.String() }
	width, longest := max(len("Shards"), len(label(len(rows)-1))), len(" Key distribution")
	for _, row := range rows {
		longest = max(longest, len(row))
	}
	var text strings.Builder
	line := func(head string, fill string, rest string) {
		text.WriteString(head + strings.Repeat(fill, width-len(head)+1) + rest + "\n")
	}
	line("Shards", " ", "| Key distribution")
	line("", "-", "+"+strings.Repeat("-", longest))
	for depth, row := range rows {
		line(label(depth), " ", "|"+string(row))
	}
	return text.String()
}

// depth returns the number of halvings after which k is the first key of a half: 0 for the key 0, 1
// for the middle.
func (s Space) depth(k keyspace.Key) int {
	if k == (keyspace.Key{}) {
		return 0
	}
	c, depth := s.cell(), 1
	for middle := c.middle(); middle != k; middle = c.middle() {
		c = c.descend(k, middle)
		depth++
	}
	return depth
}

// Tree returns the tree as text: each cell as (left middle right), an empty tree as (): (((16) 32
// (48)) 64 (96)). It includes the middles above a taken key, whether taken or not, so the text may
// have up to 128 numbers for each key.
func (a *Allocator) Tree() string {
	if a.root == nil {
		return "()"
	}
	return string(a.root.appendTree(nil, a.space.cell()))
}

// appendTree appends the text of the cell; n is the highest node within it.
func (n *node) appendTree(dst []byte, c cell) []byte {
	middle := c.middle()
	left, right := n.left, n.right
	if n.cell != c {
		left, right = nil, n
		if n.cell.middle().Less(middle) {
			left, right = n, nil
		}
	}
	dst = append(dst, '(')
	if left != nil {
		dst = append(left.appendTree(dst, c.left(middle)), ' ')
	}
	dst = middle.AppendText(dst)
	if right != nil {
		dst = right.appendTree(append(dst, ' '), c.right(middle))
	}
	return append(dst, ')')
}
