package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/runnel-stream/runnel/reshard"
)

// The counters of runnel proxy for the results of puts, by the label stream.
const (
	proxyPrefix    = "runnel_proxy_"
	storedCounter  = proxyPrefix + "stream_records_delivered_total"
	refusedCounter = proxyPrefix + "stream_attempts_throttled_total"
)

// throttlePages reads the producers' counts for a stream from pages in Prometheus' text format.
type throttlePages struct {
	urls   []string
	stream string
	client http.Client
	last   map[string]counters // by URL, of the pages that were read
}

// counters are the stream's series of a page, by name and labels.
type counters map[string]float64

// newThrottlePages checks the URLs; one without a path is a proxy's, and means its /metrics.
func newThrottlePages(urls []string, stream string) (*throttlePages, error) {
	p := &throttlePages{
		stream: stream, client: http.Client{Timeout: 10 * time.Second}, last: map[string]counters{},
	}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("%q is no URL: want http://HOST:PORT of a proxy, or of a page "+
				"that has its counters", text)
		}
		if strings.Trim(u.Path, "/") == "" {
			u.Path = "/metrics"
		}
		p.urls = append(p.urls, u.String())
	}
	return p, nil
}

// read returns how much the counters of all pages have grown since the call before. A page that
// is read for the first time has not grown. One that cannot be read is an error; the others count
// from now on all the same.
func (p *throttlePages) read(ctx context.Context) (reshard.Throttled, error) {
	var sum reshard.Throttled
	var errs []error
	for _, u := range p.urls {
		now, err := p.page(ctx, u)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", u, err))
			continue
		}
		if last, read := p.last[u]; read {
			grown := grownBy(last, now)
			sum.Stored += grown.Stored
			sum.Refused += grown.Refused
		}
		p.last[u] = now
	}
	return sum, errors.Join(errs...)
}

// maxPage is a size in bytes that exceeds a page of many thousand streams.
const maxPage = 64 << 20

func (p *throttlePages) page(ctx context.Context, u string) (counters, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL a second time
		}
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it is read only
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return readCounters(io.LimitReader(answer.Body, maxPage), p.stream)
}

// readCounters reads a page's series of a stream. That there are none yet is no error: a proxy
// has none before the first put, and an empty page before the first request. A page of something
// else is one.
func readCounters(page io.Reader, stream string) (counters, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return nil, fmt.Errorf("not a page in Prometheus' text format: %w", err)
	}
	found, known := counters{}, len(families) == 0
	for name, family := range families {
		known = known || strings.HasPrefix(name, proxyPrefix)
		if name != storedCounter && name != refusedCounter {
			continue
		}
		for _, series := range family.GetMetric() {
			labels, of := labelsOf(series)
			value := max(series.GetCounter().GetValue(), series.GetUntyped().GetValue())
			if of == stream && value >= 0 && !math.IsInf(value, 0) {
				found[name+labels] = value
			}
		}
	}
	if !known {
		return nil, fmt.Errorf("the page has no %s… metrics: it is not that of a runnel proxy",
			proxyPrefix)
	}
	return found, nil
}

// labelsOf returns the labels that identify a series among those of its name, and its stream.
func labelsOf(series *dto.Metric) (labels, stream string) {
	var text strings.Builder
	for _, label := range series.GetLabel() {
		fmt.Fprintf(&text, ",%s=%q", label.GetName(), label.GetValue())
		if label.GetName() == "stream" {
			stream = label.GetValue()
		}
	}
	return text.String(), stream
}

// grownBy returns by how much a page's counters have grown. One that is lower than it was, or that
// is new, has begun at 0 since.
func grownBy(last, now counters) reshard.Throttled {
	var t reshard.Throttled
	for name, value := range now {
		if value >= last[name] {
			value -= last[name]
		}
		grown := uint64(min(value, 1<<62))
		if strings.HasPrefix(name, refusedCounter) {
			t.Refused += grown
		} else {
			t.Stored += grown
		}
	}
	return t
}
