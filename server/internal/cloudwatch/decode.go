package cloudwatch

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/runnel-stream/runnel/internal/wire"
)

// strictCBOR decodes requests. It refuses lists longer than any list that the API allows.
var strictCBOR = mustDecMode(cbor.DecOptions{
	MaxArrayElements: 8 * maxMetrics, MaxMapPairs: 256, MaxNestedLevels: 16,
	FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
})

func mustDecMode(options cbor.DecOptions) cbor.DecMode {
	mode, err := options.DecMode()
	if err != nil {
		panic(err) // the options above contradict each other
	}
	return mode
}

// decode reads PutMetricData's input in the call's format.
func decode(call *wire.Call) (*input, error) {
	var in input
	var err error
	switch call.Format {
	case wire.JSON:
		err = json.Unmarshal(call.Body, &in)
	case wire.CBOR:
		if len(call.Body) > 0 {
			err = strictCBOR.Unmarshal(call.Body, &in)
		}
	case wire.Query:
		err = in.fromForm(call.Form)
	}
	if err != nil {
		return nil, wire.Serialization(call.Service, "The input cannot be read: "+err.Error())
	}
	return &in, nil
}

// reader reads a form's parameters and keeps the first fault.
type reader struct{ fault error }

func (in *input) fromForm(form *wire.Form) error {
	var r reader
	in.Namespace = r.text(form.Get("Namespace"))
	in.MetricData = r.data(form.Get("MetricData"))
	for _, entity := range r.list("EntityMetricData", form.Get("EntityMetricData")) {
		in.EntityMetricData = append(in.EntityMetricData,
			entityData{r.data(entity.Get("MetricData"))})
	}
	return r.fault
}

func (r *reader) fail(name string, err error) {
	if r.fault == nil && err != nil {
		r.fault = fmt.Errorf("%s: %w", name, err)
	}
}

func (r *reader) list(name string, form *wire.Form) []*wire.Form {
	list, err := form.List()
	r.fail(name, err)
	return list
}

func (r *reader) data(form *wire.Form) []datum {
	var all []datum
	for _, f := range r.list("MetricData", form) {
		d := datum{
			MetricName:        r.text(f.Get("MetricName")),
			Timestamp:         r.instant(f.Get("Timestamp")),
			Value:             r.number("Value", f.Get("Value")),
			Values:            r.numbers("Values", f.Get("Values")),
			Counts:            r.numbers("Counts", f.Get("Counts")),
			Unit:              r.text(f.Get("Unit")),
			StorageResolution: r.number("StorageResolution", f.Get("StorageResolution")),
		}
		for _, pair := range r.list("Dimensions", f.Get("Dimensions")) {
			d.Dimensions = append(d.Dimensions,
				dimension{r.text(pair.Get("Name")), r.text(pair.Get("Value"))})
		}
		if set := f.Get("StatisticValues"); set != nil {
			d.StatisticValues = &statistics{
				SampleCount: r.number("SampleCount", set.Get("SampleCount")),
				Sum:         r.number("Sum", set.Get("Sum")),
				Minimum:     r.number("Minimum", set.Get("Minimum")),
				Maximum:     r.number("Maximum", set.Get("Maximum")),
			}
		}
		all = append(all, d)
	}
	return all
}

func (r *reader) text(form *wire.Form) *string {
	if form == nil {
		return nil
	}
	text := form.Value()
	return &text
}

func (r *reader) number(name string, form *wire.Form) *number {
	if form == nil {
		return nil
	}
	value, err := strconv.ParseFloat(form.Value(), 64)
	r.fail(name, err)
	n := number(value)
	return &n
}

func (r *reader) numbers(name string, form *wire.Form) []number {
	var all []number
	for _, f := range r.list(name, form) {
		all = append(all, *r.number(name, f))
	}
	return all
}

// instant reads a date. SDKs send 2026-11-21T19:30:00.250Z; the AWS CLI passes on its user's
// text, such as 20171208T062404Z (collectd-cloudwatch#46).
func (r *reader) instant(form *wire.Form) *instant {
	if form == nil {
		return nil
	}
	text := strings.TrimSpace(form.Value())
	for _, layout := range [...]string{
		time.RFC3339Nano, "20060102T150405Z", "2006-01-02T15:04:05",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return &instant{t.UTC()}
		}
	}
	r.fail("Timestamp", fmt.Errorf("%q is no date", text))
	return nil
}
