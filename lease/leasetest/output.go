package leasetest

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/runnel-stream/runnel/lease"
)

// settles lets workers settle their outputs at the same moment, and returns their errors.
func settles(b *bench, outputs ...string) []error {
	errs := make([]error, len(outputs))
	var group sync.WaitGroup
	start := make(chan struct{})
	for i, output := range outputs {
		group.Go(func() {
			<-start
			errs[i] = b.table.SettleOutput(b.ctx(), output)
		})
	}
	close(start)
	group.Wait()
	return errs
}

// oneOutput lets workers with two outputs begin at the same moment, in new rows. The workers with
// the one output all go on, and the others are refused. So is each later one.
func oneOutput(b *bench) {
	for range 20 {
		b.create(fresh(shard0))
		b.create(fresh(shard1))
		errs := settles(b, "table a", "table b", "table a", "table b")
		have, want := "table a", "table b"
		if errs[0] != nil {
			have, want = want, have
		}
		for i, err := range errs {
			output := []string{"table a", "table b"}[i%2]
			other := new(lease.OutputError)
			switch {
			case output == have && err == nil:
			case output == want && errors.Is(err, lease.ErrOtherOutput) &&
				errors.As(err, &other) && other.Have == have && other.Want == want:
			default:
				b.Fatalf("worker %d with %s, beside %s: %v", i, output, have, err)
			}
		}
		if err := cmp.Or(settles(b, have, "table c")...); !errors.Is(err, lease.ErrOtherOutput) {
			b.Fatalf("a third output: %v", err)
		}
		b.must(b.table.SettleOutput(b.ctx(), have))
		for _, l := range b.rows() {
			b.must(b.table.Delete(b.ctx(), l))
		}
	}
}

// outputRow makes every write to rows with an output: it stays. A take writes it into other rows,
// among them those of older versions, and is refused where the row has another one.
func outputRow(b *bench) {
	b.create(fresh(shard0))
	oldRow := fresh(shard1)
	b.put(item{
		"leaseKey": str(string(oldRow.Key)), "leaseCounter": num("7"),
		"checkpoint": str("TRIM_HORIZON"),
	})
	b.must(b.table.SettleOutput(b.ctx(), "table a"))
	claim := lease.Claim{Worker: "w1", Output: "table a"}
	for _, l := range b.rows() {
		if want := map[string]string{shard0: "table a"}[string(l.Key)]; l.Output != want {
			b.Fatalf("%s has the output %q", l.Key, l.Output)
		}
		held := b.keep(b.table.Take(b.ctx(), l, claim))
		for _, write := range []func(lease.Lease) (lease.Lease, error){
			func(l lease.Lease) (lease.Lease, error) { return b.table.Renew(b.ctx(), l) },
			func(l lease.Lease) (lease.Lease, error) {
				return b.table.Checkpoint(b.ctx(), l, lease.Mark{At: at("77", 0)})
			},
			func(l lease.Lease) (lease.Lease, error) {
				return b.table.Pass(b.ctx(), l, lease.Mark{}, "w2", false)
			},
			// A reset has no output.
			func(l lease.Lease) (lease.Lease, error) { return b.table.Take(b.ctx(), l, by("w2")) },
			func(l lease.Lease) (lease.Lease, error) {
				return b.table.Rewind(b.ctx(), l, at("5", 0))
			},
			func(l lease.Lease) (lease.Lease, error) {
				return b.table.Release(b.ctx(), l, lease.Mark{})
			},
		} {
			held = b.keep(write(held))
			if b.stands(held); held.Output != "table a" {
				b.Fatalf("without its output: %+v", held)
			}
		}
		other := lease.Claim{Worker: "w3", Output: "table b"}
		if _, err := b.table.Take(b.ctx(), held, other); !errors.Is(err, lease.ErrOtherOutput) {
			b.Fatalf("a take with another output: %v", err)
		}
		b.stands(held)
	}
}

// outputOfOpenRow shows which row decides: the smallest one that has not ended. Where two rows have
// two outputs, since rows came and went meanwhile, both are refused.
func outputOfOpenRow(b *bench) {
	if err := b.table.SettleOutput(b.ctx(), "table a"); err == nil {
		b.Fatal("settled without a row")
	}
	ended := b.keep(b.table.Take(b.ctx(), b.create(fresh(shard0)), by("w1")))
	b.keep(b.table.Finish(b.ctx(), ended, lease.Mark{}, nil))
	b.create(fresh(shard1))
	b.must(b.table.SettleOutput(b.ctx(), "table a"))
	if l := b.rows(); l[0].Output != "" || l[1].Output != "table a" {
		b.Fatalf("settled as %+v", l)
	}
	second := fresh("shardId-000000000002")
	second.Output = "table b"
	b.create(second)
	for i, err := range settles(b, "table a", "table b") {
		if !errors.Is(err, lease.ErrOtherOutput) {
			b.Fatal(fmt.Errorf("worker %d: %w", i, err))
		}
	}
}
