package bench

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/bench/internal/figures"
	"github.com/runnel-stream/runnel/producer"
)

const (
	orderRounds  = 10
	orderRecords = 20_000 // of a round, 200 MB
)

// BenchmarkKeyBesidePlain puts records of 10 KiB, of 10,000 keys, through `runnel serve --memory`,
// by OrderKey and by OrderPlain in turn, ten rounds each. A round has a new server. key/plain is
// the ratio of the medians of records a second. Hardly any unit has two records, so OrderKey has
// the cost of a unit (its encoding and its MD5) and none of its gains.
func BenchmarkKeyBesidePlain(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "runnel")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary,
		"../cmd/runnel").CombinedOutput(); err != nil {
		b.Fatalf("build runnel: %v\n%s", err, out)
	}
	rates := map[producer.Order][]float64{}
	b.ResetTimer()
	for range b.N {
		for round := range orderRounds {
			turn := []producer.Order{producer.OrderKey, producer.OrderPlain}
			if round%2 == 1 {
				slices.Reverse(turn)
			}
			for _, order := range turn {
				rates[order] = append(rates[order], orderRate(b, binary, order))
			}
		}
	}
	key, plain := figures.Median(rates[producer.OrderKey]), figures.Median(rates[producer.OrderPlain])
	b.ReportMetric(key, "key-records/s")
	b.ReportMetric(plain, "plain-records/s")
	b.ReportMetric(key/plain, "key/plain")
	b.ReportMetric(0, "ns/op")
}

// orderRate returns the records a second of one producer, from the first Put to the last
// acknowledgement.
func orderRate(b *testing.B, binary string, order producer.Order) float64 {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, binary, "serve", "--addr", "127.0.0.1:0", "--memory",
		"--stream", "bench:8")
	messages, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill() // it keeps nothing
		_ = command.Wait()
	}()
	client := connect(listensAt(b, bufio.NewScanner(messages)))
	if _, err := client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{
		StreamName: aws.String("bench"),
	}); err != nil {
		b.Fatal(err)
	}
	p, err := producer.New(ctx, producer.Config{
		Stream: "bench", Kinesis: client, Reader: client, Order: order,
	})
	if err != nil {
		b.Fatal(err)
	}
	keys, payloads := putInputs()
	began := time.Now()
	for i := range orderRecords {
		record := runnel.Record{PartitionKey: keys[i%putKeys], Data: payloads[i%putPayloads]}
		if err := p.PutFunc(ctx, record, nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	rate := orderRecords / time.Since(began).Seconds()
	if err := p.Close(ctx); err != nil {
		b.Fatal(err)
	}
	return rate
}

var listens = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// listensAt returns the address that a server's messages name, and reads on, so that the server
// never blocks on its output.
func listensAt(tb testing.TB, lines *bufio.Scanner) string {
	for lines.Scan() {
		if at := listens.FindStringSubmatch(lines.Text()); at != nil {
			go func() {
				for lines.Scan() { // to the end of the process
				}
			}()
			return at[1]
		}
	}
	tb.Fatal("runnel serve printed no address")
	return ""
}
