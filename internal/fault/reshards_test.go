package fault

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// schedule returns the only reshard rule of a specification.
func schedule(t *testing.T, spec string) (*Injector, *Reshards) {
	t.Helper()
	in := mustParse(t, spec).Injector()
	rules, _ := in.Schedule()
	if len(rules) != 1 {
		t.Fatalf("%s has %d rules, want 1", spec, len(rules))
	}
	return in, rules[0]
}

// turnsOf takes n turns of a stream and returns their draws; 0 for a skipped turn.
func turnsOf(r *Reshards, stream string, n int) (draws []uint64) {
	for range n {
		turn := r.Next(stream, stream, 4)
		if turn.Skip {
			turn.Draw = 0
		}
		draws = append(draws, turn.Draw)
		r.Done(stream, "")
	}
	return draws
}

func TestTurnsCount(t *testing.T) {
	in, r := schedule(t, "seed=5 PutRecords:throttle orders:reshard=2s@2-3")
	if r.Every != 2*time.Second || !r.About("orders") || r.About("Orders") || r.About("x") {
		t.Errorf("a rule about others, or at another time: %+v", r)
	}
	var skipped []bool
	for n := range uint64(4) {
		turn := r.Next("1", "orders", 3+int(n))
		if again := r.Next("1", "orders", 9); again != turn {
			t.Errorf("the turn changed before it was done: %+v, then %+v", turn, again)
		}
		if turn.Number != n+1 || turn.Most != 6 {
			t.Errorf("%+v; want number %d, and 6 shards at most", turn, n+1)
		}
		skipped = append(skipped, turn.Skip)
		r.Done("1", "SplitShard")
	}
	if want := []bool{true, false, false, true}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %v, want %v", skipped, want)
	}
	if got := in.Counts()["SplitShard:reshard"]; got != 4 {
		t.Errorf("%d reshards counted, want 4", got)
	}
	r.Keep(func(id string) bool { return id != "1" })
	if turn := r.Next("1", "orders", 1); turn.Number != 1 || turn.Most != 2 {
		t.Errorf("%+v of a stream that was forgotten", turn)
	}
}

// TestTurnsDependOnTheSeed: a stream's turns depend on the seed, the rule and its name alone.
func TestTurnsDependOnTheSeed(t *testing.T) {
	run := func(spec, stream string, others int) []uint64 {
		_, r := schedule(t, spec)
		for i := range others {
			turnsOf(r, fmt.Sprint("other", i), 3)
		}
		return turnsOf(r, stream, 50)
	}
	one := run("seed=1 *:reshard=1s%40", "a", 0)
	if !slices.Equal(one, run("seed=1 *:reshard=9s%40", "a", 5)) {
		t.Error("other streams, or another time, gave another sequence")
	}
	if slices.Equal(one, run("seed=2 *:reshard=1s%40", "a", 0)) {
		t.Error("another seed gave the same sequence")
	}
	if slices.Equal(one, run("seed=1 *:reshard=1s%40", "b", 0)) {
		t.Error("another stream has the same sequence")
	}
	skipped := 0
	for _, draw := range one {
		if draw == 0 {
			skipped++
		}
	}
	if skipped < 15 || skipped > 45 {
		t.Errorf("%d of 50 turns were skipped at a chance of 40 %%", skipped)
	}
}

func TestScheduleIsReplaced(t *testing.T) {
	in, _ := schedule(t, "*:reshard=1s")
	_, replaced := in.Schedule()
	select {
	case <-replaced:
		t.Error("replaced by nothing")
	default:
	}
	in.Set(nil)
	<-replaced
	if rules, _ := in.Schedule(); len(rules) != 0 {
		t.Errorf("%d rules are left", len(rules))
	}
	if rules, _ := new(Injector).Schedule(); len(rules) != 0 {
		t.Errorf("the zero injector has %d rules", len(rules))
	}
}

// TestCutDraws: without a duration the seed draws one of its own for every call.
func TestCutDraws(t *testing.T) {
	cuts := func(seed int) (cuts []time.Duration) {
		in := mustParse(t, fmt.Sprintf("seed=%d *:cut-stream", seed)).Injector()
		for range 100 {
			cut := in.Draw("kinesis", "SubscribeToShard").CutStream
			if cut <= 0 || cut > maxCut {
				t.Fatalf("cut after %v", cut)
			}
			cuts = append(cuts, cut)
		}
		return cuts
	}
	one := cuts(1)
	if !slices.Equal(one, cuts(1)) || slices.Equal(one, cuts(2)) {
		t.Error("the cuts are not the seed's")
	}
	if slices.Max(one)-slices.Min(one) < maxCut/2 {
		t.Errorf("all cuts are between %v and %v", slices.Min(one), slices.Max(one))
	}
}
