package consumer

import (
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// Scenarios: shards as "id" (open), "id!" (closed), "id<parent,parent"; leases as "id" or "id$"
// (SHARD_END); leases to create as "id" (at the origin) or "id^" (TRIM_HORIZON).
func TestMissingLeases(t *testing.T) {
	for _, c := range []struct {
		name, shards, leases, beginners string
		synced                          bool
		want                            string
		holes                           bool
	}{
		{name: "a new table", shards: "a b c", beginners: "a b c", want: "a b c", holes: true},
		{
			name: "a new table, half made", shards: "a b c", leases: "a b", beginners: "a b c",
			want: "c", holes: true,
		},
		{
			name: "after a split, from the oldest", shards: "a! b c<a d<a", beginners: "a b",
			want: "a b", holes: true,
		},
		{
			name: "after a split, half made", shards: "a! b c<a d<a", leases: "b", beginners: "a b",
			want: "a", holes: true,
		},
		{
			name: "a server that does not filter", shards: "a! b<a c<a", leases: "b",
			beginners: "a b c", want: "a c", holes: true,
		},
		{
			name: "from the latest, after a split", shards: "a! b c<a d<a", beginners: "b c d",
			want: "b c d", holes: true,
		},
		{
			name: "a server with a gap between parent and children", shards: "a! b<a c<a",
			want: "b c", holes: true,
		},
		{name: "nothing is missing", shards: "a! b c<a d<a", leases: "a b", synced: true},
		{
			name: "children of an ended shard are there", shards: "a! b<a c<a", leases: "a$ b c",
			synced: true,
		},
		{
			name: "a child of an ended shard was deleted", shards: "a! b<a c<a", leases: "a$ b",
			synced: true, want: "c^",
		},
		{
			name: "an ended shard was cleaned away", shards: "a! b<a c<a", leases: "b c",
			beginners: "a", synced: true,
		},
		{
			name: "an ended shard's children were cleaned away", shards: "a! b!<a c!<a d<b,c",
			leases: "a$ d", synced: true,
		},
		{
			name: "a merge with one unfinished parent", shards: "a! b! c<a,b", leases: "a$ b",
			synced: true,
		},
		{
			name: "a merge with a deleted child", shards: "a! b! c<a,b", leases: "a$ b$",
			synced: true, want: "c^",
		},
		{
			name: "an open shard was deleted", shards: "a b", leases: "a", beginners: "a b",
			synced: true, want: "b", holes: true,
		},
		{
			name: "everything was deleted", shards: "a! b<a c<a", beginners: "a", synced: true,
			want: "a", holes: true,
		},
		{
			name: "old shards are no longer listed", shards: "c<a d<a", leases: "a$ c d",
			beginners: "c d", synced: true,
		},
		{
			name: "all between was trimmed", shards: "e<c f<c", leases: "a$", beginners: "e f",
			synced: true, want: "e f", holes: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			origin := runnel.FromLatest().Pin(time.UnixMilli(7))
			g := newGenealogy(parseLeases(c.leases), parseShards(c.shards))
			beginners := map[runnel.ShardID]bool{}
			for _, id := range strings.Fields(c.beginners) {
				beginners[runnel.ShardID(id)] = true
			}
			var got []string
			for _, l := range g.missing(beginners, origin, c.synced) {
				name := string(l.Key)
				switch {
				case l.Checkpoint.Sequence == runnel.TrimHorizon && l.From.IsZero():
					name += "^"
				case l.Checkpoint.Sequence != runnel.Latest || !l.From.Equal(origin.Time()):
					t.Errorf("created %+v", l)
				}
				got = append(got, name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("missing: %v, want %s", got, c.want)
			}
			if g.holes() != c.holes {
				t.Errorf("holes: %v", g.holes())
			}
		})
	}
}

func parseShards(text string) []shardmap.Shard {
	var shards []shardmap.Shard
	for _, word := range strings.Fields(text) {
		id, parents, _ := strings.Cut(word, "<")
		s := shardmap.Shard{ID: runnel.ShardID(strings.TrimSuffix(id, "!")), First: "1"}
		if strings.HasSuffix(id, "!") {
			s.Last = "9"
		}
		for parent := range strings.SplitSeq(parents, ",") {
			if parent != "" {
				s.Parents = append(s.Parents, runnel.ShardID(parent))
			}
		}
		shards = append(shards, s)
	}
	return shards
}

func parseLeases(text string) []lease.Lease {
	var leases []lease.Lease
	for _, word := range strings.Fields(text) {
		l := lease.Lease{Key: runnel.ShardID(strings.TrimSuffix(word, "$"))}
		if strings.HasSuffix(word, "$") {
			l.Checkpoint = runnel.End()
		}
		leases = append(leases, l)
	}
	return leases
}
