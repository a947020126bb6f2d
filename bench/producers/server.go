package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// These are the server's streams: one for the measurement and one to warm up.
const (
	loadStream = "load"
	warmStream = "warm"
)

// serve starts a server with both streams. The caller ends it.
func serve(ctx context.Context, cfg Config, limits string) (*process.Server, error) {
	return process.Serve(ctx, cfg.Runnel, "--tls",
		"--stream", fmt.Sprintf("%s:%d,%s:%d", loadStream, cfg.Shards, warmStream, cfg.Shards),
		"--limits", limits, "--chaos", fmt.Sprintf(
			"PutRecords:delay=%v%%100 PutRecord:delay=%[1]v%%100", cfg.Latency))
}

var putCalls = regexp.MustCompile(
	`(?m)^runnel_calls_total\{operation="PutRecords?",.*service="kinesis"\} (\S+)$`)

// calls returns the number of a server's PutRecord and PutRecords calls so far.
func calls(ctx context.Context, of *process.Server) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+of.Address+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	page, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return 0, err
	}
	sum := 0.0
	for _, sample := range putCalls.FindAllSubmatch(page, -1) {
		value, err := strconv.ParseFloat(string(sample[1]), 64)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return int(sum), nil
}
