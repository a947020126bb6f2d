package keyspace

import "strings"

// Table returns the keys that are taken, as the shards that they split the space into: a line
// for each depth of halving, with the number of shards and the keys that are the first of one
// of them and of none above.
//
//	Shards | Key distribution
//	-------+-----------------
//	1      |
//	2      | 64
//	4      | 32 96
//	8      | 16 80
//
// The key 0 is the first one of the single shard. The text is as long as the keys are, and has
// 129 lines of keys at most.
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

// depth returns how often the space is halved until k is the first key of a half: 0 for the
// key 0, 1 for the middle.
func (s Space) depth(k Key) int {
	if k == (Key{}) {
		return 0
	}
	c, depth := s.cell(), 1
	for middle := c.middle(); middle != k; middle = c.middle() {
		c = c.descend(k, middle)
		depth++
	}
	return depth
}

// Tree returns the tree of halves, each as (left middle right), and as () if there is none:
// (((16) 32 (48)) 64 (96)). Middles above a key that is taken stand there whether they are
// taken or not, so that the text may be up to 128 numbers long for each key.
func (a *Allocator) Tree() string {
	if a.root == nil {
		return "()"
	}
	return string(a.root.appendTree(nil, a.space.cell()))
}

// appendTree appends the cell, of which n is the uppermost node.
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
