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
		{"throttle", 50 * ms},
		{"throttle", 100 * ms},
		{"throttle", 200 * ms},
		{"records, more", 193750 * time.Microsecond}, // the floor sinks by 1/32
		{"throttle", 387500 * time.Microsecond},
		{"throttle", 775 * ms},
		{"throttle", time.Second},
		{"throttle", time.Second},
	} {
		var got time.Duration
		switch step.read {
		case "throttle":
			got = p.throttle()
		case "records, more":
			got = p.next(true, true)
		case "records":
			got = p.next(true, false)
		case "more":
			got = p.next(false, true)
		default:
			got = p.next(false, false)
		}
		if got != step.want {
			t.Fatalf("step %d, %s: wait %s, want %s", i, step.read, got, step.want)
		}
	}
	for range 1000 {
		p.next(true, true)
	}
	if p.floor != 0 {
		t.Errorf("the floor stays at %s", p.floor)
	}
}

// Against a server that allows five reads a second, with the records always there, most of the
// five are used, and few reads are refused.
func TestPaceSettles(t *testing.T) {
	p := pacer{Pace: Pace{Tip: shortestWait, Idle: 250 * time.Millisecond}}
	var now, window time.Duration
	calls, refused, done := 0, 0, 0
	for now < 10*time.Minute {
		if now-window >= time.Second {
			window, calls = now.Truncate(time.Second), 0
		}
		if calls++; calls > 5 {
			refused++
			now += p.throttle()
			continue
		}
		done++
		now += p.next(true, true) + 2*time.Millisecond
	}
	if rate := float64(done) / now.Seconds(); rate < 3 || refused*5 > done {
		t.Errorf("%.1f reads a second, %d refused of %d", rate, refused, done+refused)
	}
}

// If no record of a shard can be read yet because the server's disk hangs, the shard is read like
// an idle one.
func TestPaceWhileTheDiskHangs(t *testing.T) {
	p := pacer{Pace: Pace{Tip: shortestWait, Idle: 250 * time.Millisecond}}
	var waited time.Duration
	for range 20 {
		waited += p.after(0, onItsWay)
	}
	if least := 12 * p.Idle; waited < least {
		t.Errorf("20 reads of an empty page that is 1 ms behind take %v, want %v", waited, least)
	}
	if got := p.after(0, onItsWay+1); got != shortestWait {
		t.Errorf("in a stretch without records the wait is %v", got)
	}
	if got := p.after(7, time.Second); got != 0 {
		t.Errorf("with more to be read the wait is %v", got)
	}
}

// Least is the distance of two reads, however quick the first one was, and the waits of an idle
// shard grow from there.
func TestPaceLeast(t *testing.T) {
	p := pacer{Pace: Pace{Least: 200 * time.Millisecond, Idle: time.Second}}
	sent := time.Now()
	for i, c := range []struct {
		records int
		behind  time.Duration
		took    time.Duration
		want    time.Duration
	}{
		{7, time.Minute, 0, 200 * time.Millisecond},
		{7, time.Minute, 150 * time.Millisecond, 200 * time.Millisecond},
		{7, 0, time.Minute, time.Minute},
		{0, 0, 0, 200 * time.Millisecond},
		{0, 0, 0, 400 * time.Millisecond},
		{0, 0, 0, 800 * time.Millisecond},
		{0, 0, time.Second, 2 * time.Second},
		{1, 0, 0, 200 * time.Millisecond},
	} {
		page := Page{Records: make([]types.Record, c.records), Behind: c.behind}
		if got := p.due(sent, sent.Add(c.took), &page).Sub(sent); got != c.want {
			t.Errorf("read %d: the next one is due %s after it, want %s", i, got, c.want)
		}
	}
}
