package fault

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func mustParse(t *testing.T, spec string) *Plan {
	t.Helper()
	plan, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestParseCanonical(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"", ""},
		{"seed=7", "seed=7"},
		{"PutRecords:lose-answer@3", "PutRecords:lose-answer@3"},
		{"PutRecords:lose-answer@3-3", "PutRecords:lose-answer@3"},
		{
			"seed=7, *:error-500@2+;GetItem:throttle%2.50",
			"seed=7 *:error-500@2+ GetItem:throttle%2.5",
		},
		{"*:fail-record", "*:fail-record"},
		{"*:error-503@1+", "*:error-503"},
		{"kinesis.*:fail-record=3@1-9", "kinesis.*:fail-record=3@1-9"},
		{"putrecords:throttle-record=1/4%50", "putrecords:throttle-record=1/4%50"},
		{"PutRecords:commit-late=1500ms@1", "PutRecords:commit-late=1.5s@1"},
		{"dynamodb.*:hang=2m", "dynamodb.*:hang=2m0s"},
		{"GetRecords:expire-iterator\n*:delay=1ms", "GetRecords:expire-iterator *:delay=1ms"},
		{"SubscribeToShard:cut-stream@2", "SubscribeToShard:cut-stream@2"},
		{"*:cut-stream=90s", "*:cut-stream=1m30s"},
		{"PutRecords:refuse=AccessDenied@2-3", "PutRecords:refuse=AccessDenied@2-3"},
		{"*:reshard=5s", "*:reshard=5s"},
		{"seed=1 my-orders_2.x:reshard=1500ms@1-9", "seed=1 my-orders_2.x:reshard=1.5s@1-9"},
	} {
		if got := mustParse(t, c.spec).String(); got != c.want {
			t.Errorf("Parse(%q) = %q, want %q", c.spec, got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"nonsense", `rule "nonsense": it must read OPERATION:FAULT`},
		{"seed=x", "the seed must be a number"},
		{"PutRecords:explode", `unknown fault "explode"; there are: delay, error-500`},
		{"Put-Records:throttle", `"Put-Records" is no operation of the server (did you mean PutRecords?)`},
		{"PutRecrods:lose-answer@3", "did you mean PutRecords?); there are: *, kinesis.*, dynamodb.*, Add"},
		{"UpdateItm:throttle", "did you mean UpdateItem?"},
		{"PutMetricsData:throttle", "did you mean PutMetricData?"},
		{"BatchWriteItem:throttle", `"BatchWriteItem" is no operation of the server; there are: `},
		{"Kinesis.*:throttle", "did you mean kinesis.*?"},
		{"dynamo.*:throttle", "did you mean dynamodb.*?"},
		{"PutRecords:loose-answer", `unknown fault "loose-answer" (did you mean lose-answer?); there are`},
		{"seed=1 *:throttle seed=1", "the seed is set twice"},
		{":throttle", "the operation is missing"},
		{"*:throttle=3", "throttle takes no argument"},
		{"*:delay", "delay needs a duration"},
		{"*:delay=-1s", "delay needs a duration"},
		{"*:hang=25h", "hang needs a duration above 0 and up to 24h"},
		{"*:throttle@0", "calls count from 1"},
		{"*:throttle@", "calls count from 1"},
		{"*:throttle@5-4", "is not a range"},
		{"*:throttle@5+-9", "is both a range and open"},
		{"*:throttle%0", "is not a chance"},
		{"*:throttle%101", "is not a chance"},
		{"*:throttle%NaN", "is not a chance"},
		{"PutRecords:fail-record=0", "is not a record from 1 to 500"},
		{"PutRecords:fail-record=5/4", "is not a chance a/b"},
		{"GetRecords:fail-record", "fail-record applies to PutRecords only"},
		{"dynamodb.*:expire-iterator", "expire-iterator applies to GetRecords only"},
		{"GetRecords:cut-stream=2s", "cut-stream applies to SubscribeToShard only"},
		{"*:cut-stream=0s", "cut-stream needs a duration"},
		{"*:cut-stream=", "cut-stream needs a duration"},
		{"*:refuse", "refuse needs the code of an error"},
		{"*:refuse=400", "refuse needs the code of an error"},
		{"*:refuse=" + strings.Repeat("x", 101), "refuse needs the code of an error"},
		{"*:reshard", "reshard needs a duration"},
		{"kinesis.*:reshard=1s", `"kinesis.*" is not the name of a stream`},
		{":reshard=1s", "the stream's name is missing"},
		{strings.Repeat("s", 129) + ":reshard=1s", "too long"},
		{strings.Repeat("*:throttle ", 1001), "more than 1000 rules"},
	} {
		_, err := Parse(c.spec)
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%.40q): %v; want ... %s", c.spec, err, c.want)
		}
	}
}

// TestDraw runs transcripts of calls with their expected faults.
func TestDraw(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		spec  string
		calls []string
		want  []Decision
	}{
		{
			"PutRecords:lose-answer@2",
			[]string{"PutRecords", "GetRecords", "PutRecords", "PutRecords"},
			[]Decision{{}, {}, {LoseAnswer: true}, {}},
		},
		{
			"kinesis.*:error-500@2+",
			[]string{"PutRecords", "ListShards", "ListShards"},
			[]Decision{{}, {Refuse: InternalError}, {Refuse: InternalError}},
		},
		{"dynamodb.*:throttle", []string{"PutRecords"}, []Decision{{}}},
		{
			"*:delay=1s *:delay=2s@1 *:throttle@1 *:error-503 *:lose-answer",
			[]string{"A", "A"},
			[]Decision{
				{Delay: 3 * second, Refuse: Throttle},
				{Delay: second, Refuse: Unavailable},
			},
		},
		{
			"*:commit-late=2s@1 *:lose-answer *:expire-iterator",
			[]string{"GetRecords", "A"},
			[]Decision{{CommitLate: 2 * second, ExpireIterator: true}, {LoseAnswer: true}},
		},
		{
			"*:cut-stream=2s@1-2 *:cut-stream=3s *:throttle@2 *:reshard=1s",
			[]string{"SubscribeToShard", "A", "SubscribeToShard", "SubscribeToShard"},
			[]Decision{
				{CutStream: 2 * second},
				{Refuse: Throttle},
				{CutStream: 2 * second},
				{CutStream: 3 * second},
			},
		},
		{"*:hang=3s", []string{"A"}, []Decision{{CommitLate: 3 * second, Hang: true}}},
		{
			"*:lose-request@1-2",
			[]string{"A", "B", "C"},
			[]Decision{{Refuse: LoseRequest}, {Refuse: LoseRequest}, {}},
		},
	} {
		in := mustParse(t, c.spec).Injector()
		for i, call := range c.calls {
			if got := in.Draw("kinesis", call); !reflect.DeepEqual(got, c.want[i]) {
				t.Errorf("%s: call %d %s: %+v, want %+v", c.spec, i+1, call, got, c.want[i])
			}
		}
	}
}

func TestCountsDrawnFaults(t *testing.T) {
	in := mustParse(t, "*:delay=1s *:throttle@1 *:error-500@1 *:lose-answer *:hang=1s").Injector()
	in.Draw("kinesis", "PutRecords")
	in.Draw("kinesis", "PutRecords")
	in.Set(nil)
	in.Draw("kinesis", "PutRecords")
	want := map[string]int{
		"PutRecords:delay": 2, "PutRecords:throttle": 1, "PutRecords:lose-answer": 1,
	}
	if got := in.Counts(); !reflect.DeepEqual(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	var none *Injector
	if got := none.Draw("kinesis", "PutRecords"); !reflect.DeepEqual(got, Decision{}) {
		t.Errorf("nil injector drew %+v", got)
	}
	if got := new(Injector).Draw("kinesis", "PutRecords"); !reflect.DeepEqual(got, Decision{}) {
		t.Errorf("zero injector drew %+v", got)
	}
}

func TestRecords(t *testing.T) {
	draw := func(spec string) Decision {
		return mustParse(t, spec).Injector().Draw("kinesis", "PutRecords")
	}
	d := draw("PutRecords:fail-record=2 PutRecords:throttle-record=2 *:throttle-record=5")
	if got := d.FailRecords(5); !slices.Equal(got, []int{1}) {
		t.Errorf("failed %v, want [1]", got)
	}
	if got := d.ThrottleRecords(5); !slices.Equal(got, []int{4}) {
		t.Errorf("throttled %v, want [4]", got)
	}
	if got := d.ThrottleRecords(4); got != nil {
		t.Errorf("throttled %v of 4, want none", got)
	}
	if got := d.FailRecords(0); got != nil {
		t.Errorf("failed %v of none", got)
	}
	for seed := range 50 {
		d := draw(fmt.Sprintf("seed=%d PutRecords:fail-record", seed))
		if got := d.FailRecords(7); len(got) != 1 || got[0] < 0 || got[0] > 6 {
			t.Errorf("seed %d failed %v of 7", seed, got)
		}
	}
	if n := len(draw("*:fail-record=1/4").FailRecords(10_000)); n < 2200 || n > 2800 {
		t.Errorf("a chance of 1/4 failed %d of 10000", n)
	}
}

// TestSeed: the nth call of an operation has the same faults independently of other calls,
// another seed gives another run, and a fault's frequency is that of its rule.
func TestSeed(t *testing.T) {
	run := func(seed int, between int) (fates []bool, hits int) {
		in := mustParse(t, fmt.Sprintf("seed=%d PutRecords:lose-answer%%10", seed)).Injector()
		for range 5000 {
			for range between {
				in.Draw("kinesis", "GetRecords")
			}
			fate := in.Draw("kinesis", "PutRecords").LoseAnswer
			fates = append(fates, fate)
			if fate {
				hits++
			}
		}
		return fates, hits
	}
	one, hits := run(1, 0)
	if hits < 400 || hits > 600 {
		t.Errorf("10 %% of 5000 calls were %d", hits)
	}
	if again, _ := run(1, 3); !slices.Equal(one, again) {
		t.Error("the same seed gave another run")
	}
	if other, _ := run(2, 0); slices.Equal(one, other) {
		t.Error("another seed gave the same run")
	}
}

func TestConcurrentDraws(t *testing.T) {
	in := mustParse(t, "PutRecords:lose-answer@1-50").Injector()
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			for range 100 {
				in.Draw("kinesis", "PutRecords")
				in.Counts()
			}
		})
	}
	group.Wait()
	if got := in.Counts()["PutRecords:lose-answer"]; got != 50 {
		t.Errorf("%d answers lost, want 50", got)
	}
}

func TestContext(t *testing.T) {
	if got := From(t.Context()); !reflect.DeepEqual(got, Decision{}) {
		t.Errorf("an empty context carries %+v", got)
	}
	ctx := WithDecision(context.WithoutCancel(t.Context()), Decision{ExpireIterator: true})
	if !From(ctx).ExpireIterator {
		t.Error("the decision got lost")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("seed=7, *:error-500@2+;GetItem:throttle%2.50 PutRecords:fail-record=1/4@3-9")
	f.Add("seed=3 *:cut-stream SubscribeToShard:cut-stream=2s@2 a.b-c_d:reshard=1s%50")
	f.Add("*:commit-late=2s *:hang=1ms@4 *:delay=1h GetRecords:expire-iterator%1e-3")
	f.Fuzz(func(t *testing.T, spec string) {
		plan, err := Parse(spec)
		if err != nil {
			if !errors.Is(err, ErrSpec) {
				t.Fatalf("%v does not wrap ErrSpec", err)
			}
			return
		}
		again, err := Parse(plan.String())
		if err != nil || !reflect.DeepEqual(plan, again) {
			t.Fatalf("%q reads back as %+v, %v; want %+v", plan.String(), again, err, plan)
		}
		in := plan.Injector()
		if cut := in.Draw("kinesis", "SubscribeToShard").CutStream; cut < 0 || cut > maxDuration {
			t.Fatalf("a stream is cut after %v", cut)
		}
		rules, _ := in.Schedule()
		for _, rule := range rules {
			if rule.Every <= 0 || rule.Next("s", "s", 1).Number != 1 {
				t.Fatalf("a bad schedule: %+v", rule)
			}
		}
		d := in.Draw("kinesis", "PutRecords")
		for _, i := range slices.Concat(d.FailRecords(3), d.ThrottleRecords(3)) {
			if i < 0 || i > 2 {
				t.Fatalf("record %d of 3", i)
			}
		}
	})
}

func BenchmarkDrawNothing(b *testing.B) {
	in := new(Injector)
	for b.Loop() {
		in.Draw("kinesis", "PutRecords")
	}
}
