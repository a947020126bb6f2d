package main

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"time"
)

// known are the facts in which runnel differs by decision, each with the reason. They count for
// runnel alone: another endpoint that differs in them fails. A fact that is not here and differs is
// a failure; one that is here and does not differ is reported as stale.
var known = map[string]string{
	"delete-stream/iterator-of-namesake": "an iterator belongs to one life of a name, so that " +
		"nobody reads another stream's records unawares",
	"get-shard-iterator/number-shard-sign": "refused as invalid",
	"get-shard-iterator/number-zero": "refused with InvalidArgumentException, no internal " +
		"failure",
	"put-record/ordering-shard-sign":   "refused: no stream gave such a number",
	"wire/application-json":            "the error comes without its envelope",
	"wire/not-json":                    "the error says what is wrong with the body",
	"wire/order-body-before-signature": "the error says what is wrong with the body",
}

// knownAs turns a result that differs by decision into a known one, and one that should and does
// not into a stale one. reasons is nil for an endpoint that is not runnel.
func (r result) knownAs(reasons map[string]string) result {
	reason := reasons[r.fact.id]
	switch {
	case reason == "":
	case r.outcome == outcomeDiffers:
		r.outcome, r.reason = outcomeKnown, reason
	case r.outcome == outcomeOK:
		r.outcome = outcomeStale
		r.reason = "it was a known difference, and is none any more: take it out of known.go"
	}
	return r
}

// isRunnel reports whether the endpoint is runnel: its metrics say so.
func (k *kit) isRunnel(ctx context.Context) bool {
	if k.live {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	page := k.endpoint.JoinPath("metrics").String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := k.http.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(answer.Body)
	for answer.StatusCode == http.StatusOK && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "# HELP runnel_") {
			return true
		}
	}
	return false
}
