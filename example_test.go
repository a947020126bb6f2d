package runnel_test

import (
	"fmt"

	"github.com/runnel-stream/runnel"
)

// Start is before every record of a shard, and End after every record.
func ExamplePosition_Compare() {
	first, second := runnel.Position{Sequence: "9"}, runnel.Position{Sequence: "10", Sub: 3}
	fmt.Println(runnel.Start().Less(first), first.Less(second), second.Less(runnel.End()))
	// Output: true true true
}

// A position as the name of a file: the names sort as the positions do.
func ExamplePosition_SortText() {
	for _, p := range []runnel.Position{{Sequence: "9"}, {Sequence: "10", Sub: 3}, runnel.End()} {
		text := p.SortText()
		back, err := runnel.ParsePosition(text)
		fmt.Println(text, back, err)
	}
	// Output:
	// 001-9-0000000000 9 <nil>
	// 002-10-0000000003 10/3 <nil>
	// end end <nil>
}

// ParseFrom reads the words of the flag --from.
func ExampleParseFrom() {
	for _, text := range []string{"oldest", "latest", "2026-01-31T08:00:00Z"} {
		from, err := runnel.ParseFrom(text)
		fmt.Println(from, err)
	}
	// Output:
	// oldest <nil>
	// latest <nil>
	// 2026-01-31T08:00:00Z <nil>
}
