package interop

import (
	"context"
	"errors"
	"sync"

	"github.com/runnel-stream/runnel/consumer"
)

// checkOurs reads the stream with a worker of runnel's, with the default policy for void
// aggregates: it gets every user record that was put, under its own key, and a record twice only if
// the KPL sent it again.
func (o *opened) checkOurs(put []kplPut) {
	t := o.f.t
	var mu sync.Mutex
	got, void := map[string][]string{}, consumer.VoidError{} // keys by data; the sum of all
	worker, err := consumer.New(consumer.Config{
		Stream: *o.f.stream, App: "kpl-ours", Kinesis: o.f.client, DynamoDB: o.f.items, Once: true,
		Handler: func(_ context.Context, b *consumer.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range b.Records {
				got[string(r.Data)] = append(got[string(r.Data)], r.PartitionKey)
			}
			return nil
		},
		OnEvent: func(e consumer.Event) {
			if one := new(consumer.VoidError); e.Kind == consumer.EventVoided &&
				errors.As(e.Err, &one) {
				mu.Lock()
				defer mu.Unlock()
				void.Delivered += one.Delivered
				void.Dropped += one.Dropped
			}
		},
	})
	o.f.must(err)
	o.f.must(worker.Run(o.f.ctx))
	for _, p := range put {
		keys := got[p.data]
		if len(keys) == 0 || keys[0] != p.key || len(keys) > 1 && p.attempts == 1 {
			t.Errorf("%.40s of %s came under %q, in %d attempts", p.data, p.key, keys, p.attempts)
		}
	}
	t.Logf("runnel's worker got all; of void aggregates %d records were delivered, %d dropped",
		void.Delivered, void.Dropped)
	if (void.Delivered+void.Dropped == 0) != (o.voided == 0) {
		t.Errorf("%d void aggregates, and %+v", o.voided, void)
	}
}
