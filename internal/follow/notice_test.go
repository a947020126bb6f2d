package follow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/follow"
)

// Each notice names its shard and the place.
func TestNoticeTexts(t *testing.T) {
	for kind, want := range map[follow.Kind]string{
		follow.Void: "record 7 is an aggregate packed for another shard: 2 of its user records were " +
			"delivered, 3 dropped", follow.Gap: "behind record 7 were trimmed",
		follow.Gone: "last read: record 7", follow.Trouble: "no route; trying again",
		follow.Began: "reading from record 7 on", follow.Ended: "read to its end",
	} {
		n := follow.Notice{Kind: kind, Shard: "shard-3", After: "7", Err: errors.New("no route"), Delivered: 2, Dropped: 3}
		if text := n.String(); !strings.HasPrefix(text, "shard-3: ") || !strings.Contains(text, want) {
			t.Errorf("%v: %q, want %q", kind, text, want)
		}
	}
	n := follow.Notice{Kind: follow.Gap, Shard: "shard-3"}
	if text := n.String(); !strings.Contains(text, "behind the beginning") {
		t.Errorf("without a record: %q", text)
	}
}
