package metricspage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Series is a value of a page.
type Series struct {
	Name   string            // of the metric
	ID     string            // the name and the labels; it identifies the series within a page
	Labels map[string]string // by their names
	Value  float64
}

// maxPage is a size in bytes that exceeds a page of many thousand streams.
const maxPage = 64 << 20

// URL checks the URL of a page. One without a path is a server's, and means its /metrics.
func URL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is no URL: want http://HOST:PORT of a proxy, or of a page "+
			"that has its counters", text)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/metrics"
	}
	return u.String(), nil
}

// Get reads the page at a URL. The error does not name the URL.
func Get(ctx context.Context, client *http.Client, page string) ([]Series, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it is read only
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return Read(io.LimitReader(answer.Body, maxPage))
}

// Read reads the counters, gauges and untyped values of a page. Histograms and summaries have the
// value 0.
func Read(page io.Reader) ([]Series, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return nil, fmt.Errorf("not a page in Prometheus' text format: %w", err)
	}
	var all []Series
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			s := Series{Name: name, Labels: map[string]string{}, Value: valueOf(metric)}
			var id strings.Builder
			id.WriteString(name)
			for _, label := range metric.GetLabel() {
				s.Labels[label.GetName()] = label.GetValue()
				fmt.Fprintf(&id, ",%s=%q", label.GetName(), label.GetValue())
			}
			s.ID = id.String()
			all = append(all, s)
		}
	}
	return all, nil
}

func valueOf(metric *dto.Metric) float64 {
	switch {
	case metric.GetCounter() != nil:
		return metric.GetCounter().GetValue()
	case metric.GetGauge() != nil:
		return metric.GetGauge().GetValue()
	}
	return metric.GetUntyped().GetValue()
}
