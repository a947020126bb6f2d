package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// asClient is the first argument of this program as a client.
const asClient = "client"

// warmRecords is how many records a client puts into the other stream first.
const warmRecords = 2000

// putter puts all events, or those that the time allows. Its result counts the acknowledged events
// and the time up to the last acknowledgement.
type putter func(
	ctx context.Context, stream string, events []event, most time.Duration,
) (done, error)

// client is the main function of a client process. Its arguments are WAY ENDPOINT CA FILE PASSES
// MOST.
func client(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 6 {
		return errors.New("a client is started by the benchmark itself")
	}
	passes, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	most, err := time.ParseDuration(args[5])
	if err != nil {
		return err
	}
	api, err := connect(ctx, args[1], args[2])
	if err != nil {
		return err
	}
	put, err := putterOf(args[0], api)
	if err != nil {
		return err
	}
	once, err := load(args[3])
	if err != nil {
		return err
	}
	events := make([]event, 0, passes*len(once))
	for range passes {
		events = append(events, once...)
	}
	if _, err := put(ctx, warmStream, once[:min(warmRecords, len(once))], time.Second); err != nil {
		return fmt.Errorf("getting warm: %w", err)
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	result, err := put(ctx, loadStream, events, most)
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "done %s\n", text); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // the parent reads the figures before it closes the input
	return err
}

// connect returns a client of the SDK that trusts the server's certificate.
func connect(ctx context.Context, endpoint, ca string) (*kinesis.Client, error) {
	authority, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithCustomCABundle(bytes.NewReader(authority)))
	if err != nil {
		return nil, err
	}
	// With the SDK's default of ten idle connections a host many calls would connect anew.
	if built, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		cfg.HTTPClient = built.WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = 64
		})
	}
	return kinesis.NewFromConfig(cfg, func(o *kinesis.Options) {
		o.BaseEndpoint = aws.String(endpoint)
	}), nil
}
