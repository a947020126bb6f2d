package pages

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// A transcript of reads: their results, and the wait after each.
func TestPace(t *testing.T) {
	p := pacer{Pace: Pace{Tip: shortestWait, Idle: 250 * time.Millisecond}}
	const ms = time.Millisecond
	for i, step := range []struct {
		read string
		want time.Duration
	}{
		{"records, more", 0},
		{"records, more", 0},
		{"records", 5 * ms},
		{"nothing", 5 * ms},
		{"nothing", 10 * ms},
		{"nothing", 20 * ms},
		{"nothing", 40 * ms},
		{"nothing", 80 * ms},
		{"nothing", 160 * ms},
		{"nothing", 250 * ms},
		{"nothing", 250 * ms},
		{"records", 5 * ms},
		{"nothing", 5 * ms},
		{"more", 5 * ms}, // a stretch without records
	} {
		var got time.Duration
		switch step.read {
		case "records, more":
			got = p.next(true, true, 0)
		case "records":
			got = p.next(true, false, 0)
		case "more":
			got = p.next(false, true, 0)
		default:
			got = p.next(false, false, 0)
		}
		if got != step.want {
			t.Fatalf("step %d, %s: wait %s, want %s", i, step.read, got, step.want)
		}
	}
}

// If no record of a shard can be read yet because the server's disk hangs, the shard is read like
// an idle one.
func TestPaceWhileTheDiskHangs(t *testing.T) {
	p := pacer{Pace: Pace{Tip: shortestWait, Idle: 250 * time.Millisecond}}
	var waited time.Duration
	for range 20 {
		waited += p.after(0, onItsWay, 0)
	}
	if least := 12 * p.Idle; waited < least {
		t.Errorf("20 reads of an empty page that is 1 ms behind take %v, want %v", waited, least)
	}
	if got := p.after(0, onItsWay+1, 0); got != shortestWait {
		t.Errorf("in a stretch without records the wait is %v", got)
	}
	if got := p.after(7, time.Second, 0); got != 0 {
		t.Errorf("with more to be read the wait is %v", got)
	}
}

// Least is the distance of two reads, however quick the first one was, and the waits of an idle
// shard grow from there, or from the budget's distance.
func TestPaceLeast(t *testing.T) {
	const ms = time.Millisecond
	p := pacer{Pace: Pace{Least: 200 * ms, Idle: time.Second}}
	sent := time.Now()
	for i, c := range []struct {
		records  int
		behind   time.Duration
		took     time.Duration
		distance time.Duration
		want     time.Duration
	}{
		{7, time.Minute, 0, 0, 200 * ms},
		{7, time.Minute, 150 * ms, 0, 200 * ms},
		{7, 0, time.Minute, 0, time.Minute},
		{0, 0, 0, 0, 200 * ms},
		{0, 0, 0, 0, 400 * ms},
		{0, 0, 0, 0, 800 * ms},
		{0, 0, time.Second, 0, 2 * time.Second},
		{1, 0, 0, 0, 200 * ms},
		{0, 0, 0, 300 * ms, 300 * ms},
		{0, 0, 0, 300 * ms, 600 * ms},
		{0, 0, 0, 300 * ms, time.Second},
		{0, 0, 0, time.Minute, time.Second}, // the budget itself waits for longer
	} {
		page := Page{Records: make([]types.Record, c.records), Behind: c.behind}
		got := p.due(sent, sent.Add(c.took), &page, c.distance).Sub(sent)
		if got != c.want {
			t.Errorf("read %d: the next one is due %s after it, want %s", i, got, c.want)
		}
	}
}
