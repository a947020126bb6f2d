package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// attack is one way to attack a server. attack returns when its context ends, or earlier.
type attack struct {
	name    string
	time    time.Duration
	files   int // the server's limit of open files; 0: the machine's
	prepare func(ctx context.Context, t *target) error
	attack  func(ctx context.Context, t *target)
}

func attacks() []attack {
	return []attack{
		{name: "none", time: 10 * time.Second, attack: wait},
		{
			name: "18 sockets, 15 MiB announced, one byte sent", time: 15 * time.Second,
			attack: func(ctx context.Context, t *target) { announce(ctx, t, 18, 1); wait(ctx, t) },
		},
		{
			name: "1,000 such sockets, and 400 puts of 10 MB", time: 40 * time.Second,
			attack: func(ctx context.Context, t *target) {
				announce(ctx, t, 1000, 1)
				largePuts(ctx, t, 400)
			},
		},
		{
			name: "1,000 sockets that send 64 KiB/s", time: 30 * time.Second,
			attack: func(ctx context.Context, t *target) {
				announce(ctx, t, 1000, 64<<10)
				wait(ctx, t)
			},
		},
		{
			name: "300 silent sockets at a limit of 256 files", time: 15 * time.Second, files: 256,
			attack: func(ctx context.Context, t *target) {
				for range 300 {
					_, _ = t.dial(ctx)
				}
				wait(ctx, t)
			},
		},
		{
			name: "400 slow readers of 10 MiB", time: 30 * time.Second,
			prepare: fill, attack: func(ctx context.Context, t *target) {
				readers(ctx, t, 1<<10)
				wait(ctx, t)
			},
		},
		{
			name: "40 upgrades to h2c with 15 MB", time: 15 * time.Second, attack: upgrades,
		},
		{
			name: "8 CloudWatch forms of 6.5 MB", time: 15 * time.Second, attack: forms,
		},
		{
			name: "4 DynamoDB bodies of 15 MB of the shortest values", time: 15 * time.Second,
			attack: shortValues,
		},
		{
			name: "320 subscribers that never read", time: 20 * time.Second,
			prepare: fillSubscribed, attack: func(ctx context.Context, t *target) {
				subscribers(ctx, t)
				wait(ctx, t)
			},
		},
		{
			name: "these, and 400 readers that never read", time: 40 * time.Second,
			prepare: func(ctx context.Context, t *target) error {
				return errors.Join(fill(ctx, t), fillSubscribed(ctx, t))
			},
			attack: func(ctx context.Context, t *target) {
				subscribers(ctx, t)
				readers(ctx, t, 0)
				wait(ctx, t)
			},
		},
		{
			name: "150 connections over HTTP/2 that reset reads of 10 MiB", time: 20 * time.Second,
			prepare: fill, attack: resets,
		},
	}
}

func wait(ctx context.Context, _ *target) { <-ctx.Done() }

const head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.1\r\n" +
	"X-Amz-Target: Kinesis_20131202.PutRecords\r\n"

// announce opens sockets that announce a body of 15 MiB and send it at a rate, in bytes a second;
// at a rate of 1 they send one byte and no more.
func announce(ctx context.Context, t *target, sockets, rate int) {
	for range sockets {
		conn, err := t.dial(ctx)
		if err != nil {
			continue
		}
		_, _ = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n{", head, 15<<20)
		if rate == 1 {
			continue
		}
		go func() {
			part := bytes.Repeat([]byte(" "), rate/4)
			for ctx.Err() == nil {
				if _, err := conn.Write(part); err != nil {
					return
				}
				time.Sleep(time.Second / 4)
			}
		}()
	}
}

// records returns the body of a PutRecords of some records of 1,000,000 bytes.
func records(n int) []byte {
	type entry struct {
		Data, PartitionKey string
	}
	var in struct {
		StreamName string
		Records    []entry
	}
	in.StreamName = "attacked"
	data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("0123456789"), 100_000))
	for i := range n {
		in.Records = append(in.Records, entry{data, fmt.Sprint(i)})
	}
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	return body
}

// largePuts puts 10 MB by each of some clients at the same time, once.
func largePuts(ctx context.Context, t *target, clients int) {
	body := records(10)
	client := &http.Client{Transport: &http.Transport{}}
	var calls sync.WaitGroup
	for range clients {
		calls.Go(func() {
			for ctx.Err() == nil && t.call(ctx, client, "PutRecords", body) != nil {
				time.Sleep(time.Second)
			}
		})
	}
	calls.Wait()
}

// fill puts 60 MB.
func fill(ctx context.Context, t *target) error {
	body := records(10)
	for range 6 {
		if err := t.call(ctx, t.client, "PutRecords", body); err != nil {
			return err
		}
	}
	return nil
}

// readers ask for all records of a shard on 400 sockets, and read so many bytes a second of each
// answer; at a rate of 0 they never read.
func readers(ctx context.Context, t *target, rate int) {
	iterator, err := t.iterator(ctx, "attacked")
	if err != nil {
		panic(err)
	}
	body := fmt.Sprintf(`{"ShardIterator":%q}`, iterator)
	for range 400 {
		conn, err := t.dial(ctx)
		if err != nil {
			continue
		}
		_, _ = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s",
			strings.Replace(head, "PutRecords", "GetRecords", 1), len(body), body)
		if rate == 0 {
			continue
		}
		go func() {
			part := make([]byte, rate)
			for ctx.Err() == nil {
				if _, err := io.ReadFull(conn, part); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
	}
}

// upgrades ask for HTTP/2 with a body of 15 MB in the upgrade itself.
func upgrades(ctx context.Context, t *target) {
	body := bytes.Repeat([]byte(" "), 15_000_000)
	var sockets sync.WaitGroup
	for range 40 {
		conn, err := t.dial(ctx)
		if err != nil {
			continue
		}
		sockets.Go(func() {
			_, _ = fmt.Fprintf(conn, "%sConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"+
				"HTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: %d\r\n\r\n", head, len(body))
			_, _ = conn.Write(body)
		})
	}
	<-ctx.Done()
	sockets.Wait()
}

// forms send CloudWatch forms of 6.5 MB with 100,000 parameters.
func forms(ctx context.Context, t *target) {
	var form strings.Builder
	form.WriteString("Action=PutMetricData&Version=2010-08-01&Namespace=a")
	for i := range 99_000 {
		fmt.Fprintf(&form, "&MetricData.member.%d.Dimensions.member.%d.Name=abcdefghij", i, i)
	}
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.address,
				strings.NewReader(form.String()))
			if err != nil {
				panic(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_ = answer.Body.Close()
			}
		})
	}
	calls.Wait()
	<-ctx.Done()
}
