package producer

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

var update = flag.Bool("update", false, "write the transcripts in testdata/core anew")

// The transcripts in testdata/core are commands to the core, each followed by the core's answers.
// A line that starts with "> " is an answer.
//
//	limits calls=2 records=3 bytes=100 linger=10ms giveup=1s
//	put a b c:40           put records of these keys (c:40: of 40 bytes; a#7: with a hash key)
//	launch                 make the calls that can be made now; + joins the units of one
//	                       Kinesis record
//	land N FATE…           the outcome of call N, record by record, or
//	land N all=FATE        of the call as a whole
//	after 50ms             advance the time, and tick
//	wake                   when does the core want to be called again?
//	search FATE…           which units are to be looked up; they are found, absent or
//	                       unreadable, or the search fails
//	limits asks            the core asks for the stream's time (without it, the answers have no
//	                       Date)
//	ask 10s [2s]           does the core ask for the time? The answer is 10s, "none" or "fails",
//	                       and comes after 2s
//	date 10s               an answer has that Date
//	resume a 7 KEY=VALUE…  take unit 7 of lane a of an earlier run: server=10s is the ServerTime
//	                       of its FrozenUnit, frozen=1s its FrozenAt, and age=2s its age
//	chart A:0/1 x          the list of the shards: A:0/1 is shard A with part 0 of 1 equal parts
//	                       of the key space, - marks a closed shard; "fails" or "denied": no list
//	flush | abandon | counts
//
// The hash keys lo and hi are the lowest and the highest; a number is the first hash key of that
// group. A fate "stored@A" names the shard A, and "stored@A=7" the sequence number 7 there. A unit
// is followed by its number and its LOW, with its group before them if that is not 0.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/core/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s: the core answers otherwise now:\n%s", file, diff(string(want), got))
			}
		})
	}
}

func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("line %d: want %q\n%s", i+1, w[i], strings.Join(g[i:], "\n"))
		}
	}
	return ""
}

// player drives a core by commands.
type player struct {
	core  *core
	now   time.Time
	calls []*call
	out   bytes.Buffer
}

func replay(t *testing.T, script string) string {
	t.Helper()
	return play(t, script).out.String()
}

func play(t *testing.T, script string) *player {
	t.Helper()
	p := &player{now: time.Unix(0, 0)}
	p.limits(t, nil)
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "> ") {
			continue
		}
		p.out.WriteString(line + "\n")
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			p.run(t, words[0], words[1:])
		}
	}
	return p
}

func (p *player) say(format string, args ...any) { fmt.Fprintf(&p.out, "> "+format+"\n", args...) }

func (p *player) run(t *testing.T, command string, args []string) {
	t.Helper()
	switch command {
	case "limits":
		p.limits(t, args)
	case "put":
		for _, arg := range args {
			lane, size, _ := strings.Cut(arg, ":")
			key, hash, _ := strings.Cut(lane, "#")
			switch hash {
			case "lo":
				hash = "0"
			case "hi":
				hash = keyspace.Max().String()
			default:
				if i, err := strconv.Atoi(hash); err == nil {
					hash = keyspace.Uniform(groups)[i].Start.String()
				}
			}
			n, _ := strconv.Atoi(size)
			data := make([]byte, max(n-len(key), 0))
			p.core.putAlone(p.now, &entry{
				record: runnel.Record{PartitionKey: key, ExplicitHashKey: hash, Data: data},
			})
		}
	case "launch":
		p.launch(t)
	case "land":
		n, err := strconv.Atoi(args[0])
		if err != nil || n > len(p.calls) {
			t.Fatalf("land %v: no such call, after:\n%s", args, p.out.String())
		}
		made, o := p.calls[n-1], outcomeFor(t, args[1:])
		if o.each != nil && len(o.each) != len(made.parcels) {
			t.Fatalf("land %v: a call of %d, after:\n%s", args, len(made.lanes), p.out.String())
		}
		p.core.land(p.now, made, o)
	case "after":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			t.Fatal(err)
		}
		p.now = p.now.Add(d)
		p.core.tick(p.now)
	case "wake":
		if at, ok := p.core.wake(); ok && at.IsZero() {
			p.say("at once")
		} else if ok {
			p.say("in %v", at.Sub(p.now).Round(time.Millisecond))
		} else {
			p.say("never")
		}
	case "search":
		p.search(t, args)
	case "ask":
		p.ask(t, args)
	case "date":
		p.core.dates.saw(p.now, p.moment(t, args[0]))
	case "resume":
		p.resume(t, args)
	case "chart":
		p.chart(t, args)
	case "flush":
		p.core.ledger.flush(make(chan struct{}))
	case "abandon":
		p.core.abandon(ErrClosed)
	case "counts":
		c := p.core
		n := c.ledger.counts
		p.say("{delivered:%d undelivered:%d calls:%d retried:%d throttled:%d unknown:%d} "+
			"ready=%d held=%d flying=%d lanes=%d outage=%v", n.delivered, n.undelivered, n.calls,
			n.retried, n.throttled, n.unknown, c.ready.count, c.held.Len(), c.flying, len(c.lanes),
			c.gate.active())
	default:
		t.Fatalf("unknown command %q", command)
	}
	p.sayResults()
}

func (p *player) chart(t *testing.T, args []string) {
	t.Helper()
	var shards []runnel.Shard
	var err error
	for _, arg := range args {
		name, place, _ := strings.Cut(arg, ":")
		var i, n int
		if _, scanned := fmt.Sscanf(place, "%d/%d", &i, &n); scanned == nil {
			s := runnel.Shard{Range: keyspace.Uniform(n)[i]}
			if id, closed := strings.CutPrefix(name, "-"); closed {
				name, s.Last = id, "9"
			}
			s.ID = runnel.ShardID(name)
			shards = append(shards, s)
			continue
		}
		err = errors.New("no list")
		if name == "denied" {
			err = apiError("AccessDeniedException", "not authorized")
		}
	}
	wanted := p.core.listing(p.now)
	p.core.chart.running = false
	if err := p.core.takeShards(p.now, shards, err); err != nil {
		p.say("it is not taken: %v", err)
	} else if !wanted {
		p.say("the core has not asked for it")
	}
}

func (p *player) limits(t *testing.T, args []string) {
	l := Config{Order: OrderPlain}.withDefaults().limits()
	asks := false
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		n, _ := strconv.Atoi(value)
		d, _ := time.ParseDuration(value)
		switch name {
		case "order":
			order, err := ParseOrder(value)
			if err != nil {
				t.Fatal(err)
			}
			l = Config{Order: order}.withDefaults().limits()
			l.reads = true
		case "asks":
			asks = true
		case "unit":
			l.unit = n
		case "window":
			l.window = uint64(n)
		case "horizon":
			l.horizon = d
		case "calls":
			l.calls = n
		case "records":
			l.records = n
		case "bytes":
			l.bytes = n
		case "linger":
			l.linger = d
		case "giveup":
			l.giveUp = d
		default:
			t.Fatalf("unknown limit %q", name)
		}
	}
	p.core, p.calls = newCore("s", l, rand.New(rand.NewPCG(1, 2))), nil
	p.core.began = p.now
	p.core.dates.none = !asks
}

func (p *player) launch(t *testing.T) {
	t.Helper()
	before := len(p.calls)
	for made := p.core.launchSealed(t, p.now); made != nil; made = p.core.launchSealed(t, p.now) {
		p.calls = append(p.calls, made)
		var names []string
		for _, packed := range made.parcels {
			var inside []string
			for _, l := range packed.lanes {
				inside = append(inside, unitName(l))
			}
			names = append(names, strings.Join(inside, "+"))
		}
		probe := ""
		if made.probe {
			probe = " (probe)"
		}
		p.say("call %d: %s%s", len(p.calls), strings.Join(names, " "), probe)
	}
	if len(p.calls) == before {
		p.say("nothing to send")
	}
}

func (p *player) search(t *testing.T, args []string) {
	t.Helper()
	s := p.core.search(p.now)
	if s == nil {
		p.say("nothing to look up")
		return
	}
	var results []found
	for i, l := range s.lanes {
		p.say("look up %s from %s on", unitName(l), p.from(l))
		switch args[min(i, len(args)-1)] {
		case "found":
			results = append(results, found{verdict: placed("shardId-0", "7")})
		case "absent":
			results = append(results, found{absent: true})
		case "unreadable":
			results = append(results, found{err: errors.New("it may not be read")})
		case "fails":
			p.core.landSearch(p.now, s, nil, errors.New("no answer"))
			return
		}
	}
	p.core.landSearch(p.now, s, results, nil)
}

func (p *player) moment(t *testing.T, text string) time.Time {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, 0).Add(d)
}

func (p *player) ask(t *testing.T, args []string) {
	t.Helper()
	if !p.core.ask(p.now) {
		p.say("nothing to ask")
		return
	}
	if len(args) > 1 {
		p.now = p.now.Add(p.moment(t, args[1]).Sub(time.Unix(0, 0)))
	}
	switch answer := args[0]; answer {
	case "fails":
		p.core.landAsk(p.now, time.Time{}, false)
	case "none":
		p.core.landAsk(p.now, time.Time{}, true)
	default:
		p.core.landAsk(p.now, p.moment(t, answer), true)
	}
	p.say("asked")
}

func (p *player) resume(t *testing.T, args []string) {
	t.Helper()
	number, _ := strconv.Atoi(args[1])
	f := FrozenUnit{
		Unit:         aggregate.Unit{Number: uint64(number), Low: uint64(number)},
		PartitionKey: args[0], Data: []byte{}, Marks: []uint64{1}, FrozenAt: p.now,
	}
	var age time.Duration
	exact := false
	for _, arg := range args[2:] {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "server":
			f.ServerTime = p.moment(t, value)
		case "frozen":
			f.FrozenAt = p.moment(t, value)
		case "age":
			age, exact = p.moment(t, value).Sub(time.Unix(0, 0)), true
		}
	}
	p.core.resume(p.now, f, []runnel.Record{{PartitionKey: args[0]}}, age, exact)
}

// from returns the place where the search for a lane's unit begins in its shard.
func (p *player) from(l *lane) string {
	switch from := p.core.startOf("shardId-0", []*lane{l}); {
	case from.after != "":
		return "behind record " + string(from.after)
	case from.at.IsZero():
		return "the oldest record"
	default:
		return from.at.Sub(time.Unix(0, 0)).String()
	}
}

// unitName returns the key and the records of a lane's unit, and its identity if it has one.
func unitName(l *lane) string {
	name := l.key.partition
	for _, e := range recordsOf(l) {
		name += fmt.Sprintf("/%d", e.number)
	}
	if u := l.unit.id; l.unit.wrapped() {
		name += "("
		if group := u.Producer[15]; group > 0 {
			name += fmt.Sprintf("%d:", group)
		}
		name += fmt.Sprintf("%d,%d)", u.Number, u.Low)
	}
	return name
}

func (p *player) sayResults() {
	for _, s := range p.core.ledger.settled {
		if s.entry == nil {
			p.say("flushed")
			continue
		}
		verdict := "delivered"
		if s.result.Err != nil {
			verdict = s.result.Err.Error()
		}
		p.say("%s/%d attempts=%d unknown=%d %s", s.entry.record.PartitionKey, s.entry.number,
			s.result.Attempts, s.result.Unknown, verdict)
	}
	p.core.ledger.settled = nil
}

var fates = map[string]fate{
	"stored": stored, "throttled": throttled, "failed": failed, "refused": refused,
	"unknown": unknown, "notsent": notSent, "suspect": suspect,
	"withheld": withheld,
}

func outcomeFor(t *testing.T, words []string) outcome {
	verdictFor := func(word string) verdict {
		word, shard, _ := strings.Cut(word, "@")
		f, ok := fates[word]
		if !ok {
			names := make([]string, 0, len(fates))
			for name := range fates {
				names = append(names, name)
			}
			sort.Strings(names)
			t.Fatalf("%q is no fate; want one of %v", word, names)
		}
		if f == stored {
			shard, number, _ := strings.Cut(shard, "=")
			return verdict{
				fate: f, shard: runnel.ShardID(cmp.Or(shard, "shardId-0")),
				sequence: runnel.SequenceNumber(cmp.Or(number, "1")),
			}
		}
		return verdict{fate: f, err: fmt.Errorf("it was %s", word)}
	}
	if name, whole := strings.CutPrefix(words[0], "all="); whole {
		return outcome{all: verdictFor(name)}
	}
	var o outcome
	for _, word := range words {
		o.each = append(o.each, verdictFor(word))
	}
	return o
}
