package consumer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/runneltest"
)

// Units on the real server: a worker is killed, a shard is split and two are merged, and after each
// step every unit so far comes once more. The handler gets each record once.
func TestUnitsOnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(),
			runneltest.WithStream("orders", 2))
		l := newLedger(t, server)
		var j journal
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		run := func(id string) (kill func()) {
			w := l.worker(id, j.into)
			life, end := context.WithCancelCause(ctx)
			group.Go(func() {
				if err := w.Run(life); err != nil && !errors.Is(err, seam.ErrKilled) {
					t.Errorf("%s: %v", id, err)
				}
			})
			return func() { end(seam.ErrKilled) }
		}
		killFirst := run("w1")
		var sent []string
		var want []string
		put := func(key, frozen string) {
			_, err := server.Kinesis().PutRecord(ctx, &kinesis.PutRecordInput{
				StreamName: aws.String("orders"), PartitionKey: aws.String(key), Data: []byte(frozen),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for round := range 4 {
			for _, key := range keys(5) {
				data := key + "/" + string(rune('0'+round))
				frozen := unit(key[len(key)-1], uint64(round+1), key, data, data+"+")
				put(key, frozen)
				sent = append(sent, key, frozen)
				want = append(want, data, data+"+")
			}
			<-time.After(5 * time.Second)
			switch round {
			case 0:
				l.reshard(0, false)
			case 1:
				killFirst()
				run("w2")
			case 2:
				l.reshard(1, true)
			}
			<-time.After(30 * time.Second)
			for i := 0; i < len(sent); i += 2 {
				put(sent[i], sent[i+1])
			}
			<-time.After(30 * time.Second)
		}
		stop()
		group.Wait()
		got := strings.Fields(j.text())
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
