package reshard_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
)

var update = flag.Bool("update", false, "write the transcripts in testdata/autoscale anew")

// Each transcript in testdata/autoscale is a sequence of loads, each followed by the autoscaler's
// decision and its reasons. A line that starts with "> " is an answer; its decision is carried out.
//
//	policy split=0.8 target=0.7 merge=0.35 min=2 …   before anything else
//	shards 2                   of equal size
//	feed none|all|shard        shards take no more than on AWS; the producers' counts of refused
//	                           attempts: none, in all, or by shard
//	sees all=0.5 key:a=0.2 …   a window with so much load, in fractions of a shard's bytes: over
//	                           the whole space, over a part of it (0-0.25=0.9), as records
//	                           (all=0.5r), or of one key
//	sees 5 times …             so many windows; answers for changes and the last window only
//	refused 300                refused attempts in the next window, by the producers' counts
//	later 20m                  a pause between two windows
//	another scales to 3        a change by another program
func TestAutoscaleTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/autoscale/*.txt")
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
			} else if got != string(want) {
				t.Errorf("%s: it is decided otherwise now:\n%s", file, got)
			}
		})
	}
}

type player struct {
	*world
	t       *testing.T
	policy  reshard.Policy
	core    *reshard.Autoscaler
	refused uint64
	out     strings.Builder
}

func replay(t *testing.T, text string) string {
	p := &player{t: t, world: newWorld(keyspace.Uniform(1))}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "> ") {
			continue
		}
		p.out.WriteString(line)
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			p.do(words)
		}
	}
	return p.out.String()
}

func (p *player) number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *player) do(words []string) {
	switch words[0] {
	case "policy":
		p.setPolicy(words[1:])
	case "shards":
		p.world = newWorld(keyspace.Uniform(int(p.number(words[1]))))
	case "feed":
		p.feed = map[string]feed{"none": noCounts, "all": inAll, "shard": byShard}[words[1]]
	case "refused":
		p.refused = uint64(p.number(words[1]))
	case "later":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			p.t.Fatal(err)
		}
		p.now = p.now.Add(d)
	case "another":
		planned, err := plan.Uniform(reshard.OpenRanges(p.shards), int(p.number(words[3])), 0)
		if err != nil {
			p.t.Fatal(err)
		}
		p.apply(p.t, planned)
	case "sees":
		p.sees(words[1:])
	default:
		p.t.Fatal("no such command: ", words[0])
	}
}

func (p *player) setPolicy(words []string) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		n := p.number(value)
		switch name {
		case "split":
			p.policy.SplitAbove = n
		case "target":
			p.policy.Target = n
		case "merge":
			p.policy.MergeUnder = n
		case "min":
			p.policy.MinShards = int(n)
		case "max":
			p.policy.MaxShards = int(n)
		case "steps":
			p.policy.MaxSteps = int(n)
		case "windows":
			p.policy.MergeWindows = int(n)
		case "cooldown":
			p.policy.SplitCooldown = time.Duration(n) * time.Minute
		default:
			p.t.Fatal("no such policy: ", word)
		}
	}
}

func (p *player) sees(words []string) {
	times := 1
	if len(words) > 1 && words[1] == "times" {
		times, words = int(p.number(words[0])), words[2:]
	}
	if p.core == nil {
		core, err := reshard.NewAutoscaler(p.policy)
		if err != nil {
			p.t.Fatal(err)
		}
		p.core = core
	}
	histogram, names := load.NewHistogram(1<<16), load.NewHeavy(100)
	for _, word := range words {
		where, much, _ := strings.Cut(word, "=")
		records := strings.HasSuffix(much, "r")
		n := p.number(strings.TrimSuffix(much, "r"))
		bytes, also := n, n/10
		if records {
			bytes, also = n/10, n
		}
		for _, point := range p.where(where, bytes, also) {
			histogram.AddPoint(point)
			if key, named := strings.CutPrefix(where, "key:"); named {
				names.Add(point.At, key, point.Weight)
			}
		}
	}
	for i := range times {
		sample := p.look(histogram.Points())
		sample.Hot = names.Top(10)
		sample.Throttled.Refused += p.refused
		p.refused = 0
		d, err := p.core.Decide(sample)
		if err != nil {
			p.t.Fatal(err)
		}
		if d.Action == reshard.ActionHold && i < times-1 {
			continue
		}
		p.answer(d, i+1, times)
		p.apply(p.t, d.Plan)
	}
}

func (p *player) where(text string, bytes, records float64) []load.Point {
	if key, named := strings.CutPrefix(text, "key:"); named {
		return []load.Point{{
			At: keyspace.Of(key), Weight: uint64(bytes * reshard.ShardBytes),
			Also: uint64(1000 * records * reshard.ShardRecords),
		}}
	}
	r := keyspace.All()
	if text != "all" {
		from, to, _ := strings.Cut(text, "-")
		at := func(text string) keyspace.Key {
			return keyspace.Key{Hi: uint64(p.number(text)*(1<<32)) << 32}
		}
		r = keyspace.Range{Start: at(from), End: at(to)}
	}
	return even(r, 64, bytes, records)
}

func (p *player) answer(d reshard.Decision, at, times int) {
	if times > 1 {
		fmt.Fprintf(&p.out, "> window %d of %d:\n", at, times)
	}
	fmt.Fprintf(&p.out, "> %s, peak %.2f\n", d.Action, d.Peak)
	for _, reason := range d.Reasons {
		fmt.Fprintf(&p.out, ">   %s\n", reason)
	}
	for _, step := range d.Plan.Steps {
		fmt.Fprintf(&p.out, "> %s", step.Kind)
		for _, r := range step.From {
			fmt.Fprintf(&p.out, " %.4f-%.4f", part(r.Start), part(r.Start)+r.Part())
		}
		if step.Kind == plan.StepSplit {
			fmt.Fprintf(&p.out, " at %.4f", part(step.Bound()))
		}
		p.out.WriteByte('\n')
	}
}

// part is the place of a key in the key space, in [0, 1).
func part(k keyspace.Key) float64 { return keyspace.Range{End: k}.Part() }
