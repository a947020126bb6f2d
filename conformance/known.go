package main

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"time"
)

// known has the facts in which runnel differs by decision, each with the reason. The map is for
// runnel alone: another endpoint that differs in these facts fails. An unlisted fact that differs
// is a failure; a listed fact that does not differ is reported as stale.
var known = map[string]string{
	"delete-stream/iterator-of-namesake": "an iterator belongs to one stream, not to its name: a " +
		"reader never gets the records of a later stream by accident",
	"get-shard-iterator/number-shard-sign": "refused as invalid",
	"get-shard-iterator/number-zero": "refused with InvalidArgumentException, not with an " +
		"internal failure",
	"put-record/ordering-shard-sign":   "refused: no shard has a negative number",
	"wire/not-json":                    "the error has a text: the fault in the body",
	"wire/order-body-before-signature": "the error has a text: the fault in the body",
}

// knownAs marks a listed result as known if it differs and as stale if it does not. reasons maps
// fact ids to the reasons of decided differences; it is nil for an endpoint that is not runnel.
func (r result) knownAs(reasons map[string]string) result {
	reason := reasons[r.fact.id]
	switch {
	case reason == "":
	case r.outcome == outcomeDiffers:
		r.outcome, r.reason = outcomeKnown, reason
	case r.outcome == outcomeOK:
		r.outcome = outcomeStale
		r.reason = "it no longer differs: remove it from known.go"
	}
	return r
}

// isRunnel reports whether the endpoint is runnel. It looks for runnel's metrics at /metrics.
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
