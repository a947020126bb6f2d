package pages

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// A reader that comes back after a time gets a page with a gap if the stream can have removed
// unread records meanwhile, and only then.
func TestGap(t *testing.T) {
	for _, c := range []struct {
		name    string
		away    time.Duration
		removed int  // of four records, of which two were read
		lost    bool // the iterator
		want    bool
	}{
		{name: "in time", away: time.Hour, want: false},
		{name: "in time, with a new iterator", away: time.Hour, lost: true, want: false},
		{name: "removed", away: 30 * time.Hour, removed: 3, lost: true, want: true},
		{name: "overtaken by the removal", away: 30 * time.Hour, removed: 3, want: true},
		{name: "at the last record", away: 30 * time.Hour, removed: 1, want: false},
		{name: "all of it", away: 30 * time.Hour, removed: 4, lost: true, want: true},
		{name: "gone though too young", away: time.Hour, removed: 3, lost: true, want: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{
					skew: 3 * time.Hour, horizon: shardmap.Horizon{Created: time.Now().Add(3 * time.Hour)},
				}
				f.put(4)
				cursor := f.cursor(runnel.FromOldest(), of(f), func(c *Config) { c.Gaps = true })
				page, err := cursor.Next(t.Context())
				if err != nil || numbers(page) != "0 1" || page.Gap {
					t.Fatalf("%+v, %v", page, err)
				}
				if at := *page.Records[1].ApproximateArrivalTimestamp; !page.Complete.Equal(at) {
					t.Errorf("complete to %s, want %s", page.Complete, at)
				}
				<-time.After(c.away)
				f.trimmed = c.removed
				if c.lost {
					calls := 0
					f.fault = func(string) error {
						if calls++; calls == 1 {
							return errExpired
						}
						return nil
					}
				}
				page, err = cursor.Next(t.Context())
				if err != nil || page.Gap != c.want {
					t.Errorf("gap is %v with records %q: %v", page.Gap, numbers(page), err)
				}
			})
		})
	}
}

// A closed shard ends although its last records are as old as the retention period and still there.
func TestEndOfOldRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{closed: true, atEndOnly: true, horizon: shardmap.Horizon{Created: time.Now()}}
		f.put(4)
		<-time.After(30 * time.Hour)
		f.trimmed = 1
		cursor := f.cursor(runnel.FromSequence("101"), of(f), func(c *Config) { c.Gaps = true })
		var read []string
		for range 20 {
			page, err := cursor.Next(t.Context())
			if err != nil || page.Gap {
				t.Fatalf("%+v, %v", page, err)
			}
			read = append(read, numbers(page))
			if page.Ended {
				if got := strings.Join(strings.Fields(strings.Join(read, " ")), " "); got != "1 2 3" {
					t.Errorf("the records are %q", got)
				}
				return
			}
		}
		t.Errorf("no end after the pages %q", read)
	})
}

// A shard of which no record was read begins with a gap if it was left for too long, unless the
// stream still lists a parent.
func TestGapAtTheBeginning(t *testing.T) {
	for _, listed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{
				horizon: shardmap.Horizon{Created: time.Now().Add(-100 * time.Hour)},
				shards:  []runnel.Shard{{ID: "a", First: "90"}},
			}
			if listed {
				f.shards = append(f.shards, runnel.Shard{ID: "parent"})
			}
			f.put(1)
			page, err := f.cursor(runnel.FromOldest(), of(f), func(c *Config) {
				c.Gaps, c.Parents = true, []runnel.ShardID{"parent"}
				c.Complete = time.Now().Add(-50 * time.Hour)
			}).Next(t.Context())
			first := page.First == "90"
			if err != nil || page.Gap == listed || first == listed || numbers(page) != "0" {
				t.Errorf("parent listed %v: %+v, %v", listed, page, err)
			}
		})
	}
}
