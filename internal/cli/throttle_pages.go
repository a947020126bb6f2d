package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/metricspage"
	"github.com/runnel-stream/runnel/reshard"
)

// throttlePages reads the producers' counts for a stream from pages in Prometheus' text format.
type throttlePages struct {
	urls   []string
	stream string
	client http.Client
	last   map[string]counters // by URL, of the pages that were read
}

// counters are the values of a stream's counters on a page, by metricspage.Series.ID.
type counters map[string]float64

// newThrottlePages checks the URLs; one without a path is a proxy's, and means its /metrics.
func newThrottlePages(urls []string, stream string) (*throttlePages, error) {
	p := &throttlePages{
		stream: stream, client: http.Client{Timeout: 10 * time.Second}, last: map[string]counters{},
	}
	for _, text := range urls {
		page, err := metricspage.URL(text)
		if err != nil {
			return nil, err
		}
		p.urls = append(p.urls, page)
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

func (p *throttlePages) page(ctx context.Context, u string) (counters, error) {
	series, err := metricspage.Get(ctx, &p.client, u)
	if err != nil {
		return nil, err
	}
	return countersOf(series, p.stream)
}

// countersOf returns a page's counters of a stream. No counter is no error: a proxy has none before
// the first put, and an empty page before the first request. A page of another program is an error.
func countersOf(page []metricspage.Series, stream string) (counters, error) {
	found, known := counters{}, len(page) == 0
	for _, s := range page {
		known = known || strings.HasPrefix(s.Name, metricspage.ProxyPrefix)
		switch {
		case s.Name != metricspage.ProxyRecordsDelivered &&
			s.Name != metricspage.ProxyAttemptsThrottled:
		case s.Labels[metricspage.StreamLabel] == stream && s.Value >= 0 && !math.IsInf(s.Value, 0):
			found[s.ID] = s.Value
		}
	}
	if !known {
		return nil, fmt.Errorf("the page has no %s… metrics: it is not that of a runnel proxy",
			metricspage.ProxyPrefix)
	}
	return found, nil
}

// grownBy returns the growth of a page's counters. A counter that is new or lower than before has
// begun again at 0.
func grownBy(last, now counters) reshard.Throttled {
	var t reshard.Throttled
	for name, value := range now {
		if value >= last[name] {
			value -= last[name]
		}
		grown := uint64(min(value, 1<<62))
		if strings.HasPrefix(name, metricspage.ProxyAttemptsThrottled) {
			t.Refused += grown
		} else {
			t.Stored += grown
		}
	}
	return t
}
