package cloudwatch

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/runnel-stream/runnel/internal/wire"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newService(t testing.TB, series int) *Service {
	t.Helper()
	s, err := New(Config{MaxSeries: series, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var home = wire.World{Account: "000000000000", Region: "us-east-1"}

// put sends a form, as the query protocol has it.
func put(t testing.TB, s *Service, pairs ...string) error {
	t.Helper()
	form, err := wire.ParseForm([]byte(strings.Join(pairs, "&")))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Serve(t.Context(), &wire.Call{
		Service: wire.CloudWatch, Operation: "PutMetricData", Format: wire.Query,
		Form: form, World: home,
	})
	return err
}

// shown returns the service's sample lines, as "name{labels} value".
func shown(t testing.TB, s *Service) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			name := family.GetName() + "{" + strings.Join(labels, " ") + "}"
			switch family.GetType() {
			case dto.MetricType_SUMMARY:
				lines["count of "+name] = float64(m.GetSummary().GetSampleCount())
				lines["sum of "+name] = m.GetSummary().GetSampleSum()
			case dto.MetricType_COUNTER:
				lines[name] = m.GetCounter().GetValue()
			default:
				lines[name] = m.GetGauge().GetValue()
			}
		}
	}
	return lines
}

func want(t *testing.T, got map[string]float64, name string, value float64) {
	t.Helper()
	if is, ok := got[name]; !ok || is != value {
		t.Errorf("%s is %v (%v), want %v", name, is, ok, value)
	}
}

// metric is the labels of a series of "app", "m".
func metric(dimensions, unit string) string {
	return "{account=000000000000 dimensions=" + dimensions + " metric=m namespace=app " +
		"region=us-east-1 unit=" + unit + "}"
}

const datum1 = "MetricData.member.1."

// TestSeries: sums and counts of everything, the newest datum's average, minimum and maximum,
// dimensions in any order, units apart.
func TestSeries(t *testing.T) {
	s := newService(t, 0)
	for _, pairs := range [][]string{
		{datum1 + "Value=-3"},
		{
			datum1 + "Values.member.1=1", datum1 + "Values.member.2=10",
			datum1 + "Counts.member.1=2", datum1 + "Counts.member.2=4",
			datum1 + "Timestamp=2026-11-21T12%3A00%3A01Z",
		},
		{
			datum1 + "StatisticValues.SampleCount=4", datum1 + "StatisticValues.Sum=10",
			datum1 + "StatisticValues.Minimum=1", datum1 + "StatisticValues.Maximum=5",
			datum1 + "Timestamp=2026-11-21T11:59:59.500Z", // older than the last one
		},
		{datum1 + "Value=7", datum1 + "Unit=Count"},
		{
			datum1 + "Value=1", datum1 + "Dimensions.member.2.Name=a", datum1 + "Dimensions.member.2.Value=x%2Cy",
			datum1 + "Dimensions.member.1.Name=b", datum1 + "Dimensions.member.1.Value=2",
		},
		{
			datum1 + "Value=2", datum1 + "Dimensions.member.1.Name=a", datum1 + "Dimensions.member.1.Value=x%2Cy",
			datum1 + "Dimensions.member.10.Name=b", datum1 + "Dimensions.member.10.Value=2",
		},
	} {
		if err := put(t, s, append(pairs, "Namespace=app", datum1+"MetricName=m")...); err != nil {
			t.Errorf("%v: %v", pairs, err)
		}
	}
	got := shown(t, s)
	plain := metric("", "None")
	want(t, got, "count of runnel_cloudwatch_value"+plain, 1+4+6)
	want(t, got, "sum of runnel_cloudwatch_value"+plain, -3+10+42)
	want(t, got, "runnel_cloudwatch_average"+plain, 7)
	want(t, got, "runnel_cloudwatch_minimum"+plain, 1)
	want(t, got, "runnel_cloudwatch_maximum"+plain, 10)
	want(t, got, "sum of runnel_cloudwatch_value"+metric("", "Count"), 7)
	want(t, got, "sum of runnel_cloudwatch_value"+metric(`a="x,y",b=2`, "None"), 3)
	want(t, got, "runnel_cloudwatch_series{}", 3)
	want(t, got, "runnel_cloudwatch_data_total{}", 6)
	want(t, got, "runnel_cloudwatch_series_dropped_total{}", 0)
}

// TestBounds: the series that was not sent for longest makes room, by number and by length.
func TestBounds(t *testing.T) {
	s := newService(t, 3)
	for _, name := range []string{"a", "b", "c", "a", "d"} {
		if err := put(t, s, "Namespace=app", datum1+"MetricName="+name, datum1+"Value=1"); err != nil {
			t.Fatal(err)
		}
	}
	all, counts := s.store.snapshot()
	names := map[string]bool{}
	for _, kept := range all {
		names[kept.metric] = true
	}
	if len(all) != 3 || !names["a"] || !names["c"] || !names["d"] || counts.dropped != 1 {
		t.Errorf("kept %v, dropped %d; want a, c and d, and one dropped", names, counts.dropped)
	}
	s = newService(t, 0)
	for i := range 1000 {
		pairs := []string{"Namespace=app", datum1 + "MetricName=m", datum1 + "Value=1"}
		for d := range maxDimensions {
			pairs = append(pairs, fmt.Sprintf(datum1+"Dimensions.member.%d.Name=%d", d+1, d),
				fmt.Sprintf(datum1+"Dimensions.member.%d.Value=%s%d", d+1, strings.Repeat("x", 1000), i))
		}
		if err := put(t, s, pairs...); err != nil {
			t.Fatal(err)
		}
	}
	all, counts = s.store.snapshot()
	length := 0
	for _, kept := range all {
		length += kept.size()
	}
	if counts.names != length || length > maxNames || length < maxNames/2 || counts.dropped == 0 {
		t.Errorf("%d bytes of names are counted, %d are there, %d series dropped; at most %d",
			counts.names, length, counts.dropped, maxNames)
	}
}

// TestWorldsAreSeparate: accounts and regions do not mix.
func TestWorldsAreSeparate(t *testing.T) {
	s := newService(t, 0)
	for _, world := range []wire.World{home, {Account: "111122223333", Region: "eu-west-1"}} {
		_, err := s.Serve(t.Context(), &wire.Call{
			Service: wire.CloudWatch, Operation: "PutMetricData", World: world,
			Body: []byte(`{"Namespace":"app","MetricData":[{"MetricName":"m","Value":1}]}`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := shown(t, s)
	want(t, got, "sum of runnel_cloudwatch_value"+metric("", "None"), 1)
	want(t, got, "runnel_cloudwatch_series{}", 2)
}

func TestRefusals(t *testing.T) {
	number := func(n int, text string) string { return strings.ReplaceAll(text, "#", fmt.Sprint(n)) }
	list := func(n int, text string) (pairs string) {
		for i := range n {
			pairs += "&" + number(i+1, text)
		}
		return pairs
	}
	base := "Namespace=app&" + datum1 + "MetricName=m&"
	value := base + datum1 + "Value=1&"
	const combination, missing, wrong = "InvalidParameterCombination", "MissingParameter", "InvalidParameterValue"
	for _, c := range []struct{ form, code, text string }{
		{"", missing, "The parameter Namespace is required."},
		{"Namespace=", missing, "The parameter Namespace is required."},
		{"Namespace=AWS/EC2", wrong, "The value AWS/ for parameter Namespace is invalid."},
		{"Namespace=:a", wrong, "The value :a for parameter Namespace is invalid."},
		{"Namespace=a%0Ab", wrong, "must contain only ASCII characters"},
		{"Namespace=%FF", wrong, "must contain only ASCII characters"},
		{"Namespace=+", wrong, "must contain a character that is no white space"},
		{"Namespace=" + strings.Repeat("n", 256), wrong, "The parameter Namespace must be shorter than 256 characters."},
		{"Namespace=app", missing, "The parameter MetricData is required."},
		{"Namespace=app&MetricData=", missing, "The parameter MetricData is required."},
		{"Namespace=app" + list(1001, "MetricData.member.#.Value=1"), wrong, "The collection MetricData must not have a size greater than 1000."},
		{"Namespace=app" + list(3, "EntityMetricData.member.#.MetricData.member.1.Value=1"), wrong, "The collection EntityMetricData"},
		{"Namespace=app&" + datum1 + "Value=1", missing, "The parameter MetricData.member.1.MetricName is required."},
		{"Namespace=app&EntityMetricData.member.1.MetricData.member.1.Value=1", missing, "The parameter EntityMetricData.member.1.MetricData.member.1.MetricName is required."},
		{base, missing, "At least one of the parameters MetricData.member.1.Value"},
		{value + datum1 + "Values.member.1=1", combination, "The parameters MetricData.member.1.Value and MetricData.member.1.Values are mutually exclusive and you have specified both."},
		{value + datum1 + "StatisticValues.Sum=1", combination, "The parameters MetricData.member.1.Value and MetricData.member.1.StatisticValues are mutually exclusive and you have specified both."},
		{base + datum1 + "Values.member.1=1&" + datum1 + "Counts.member.1=1&" + datum1 + "Counts.member.2=1", wrong, "The parameters MetricData.member.1.Values and MetricData.member.1.Counts must be of the same size."},
		{base + list(151, datum1+"Values.member.#=1"), wrong, "The collection MetricData.member.1.Values must not have a size greater than 150."},
		{base + datum1 + "Values.member.1=NaN", wrong, "The value NaN for parameter MetricData.member.1.Values.member.1 is invalid."},
		{base + datum1 + "Values.member.1=1&" + datum1 + "Counts.member.1=0", wrong, "The parameter MetricData.member.1.Counts.member.1 must not equal 0."},
		{base + datum1 + "Value=NaN", wrong, "The value NaN for parameter MetricData.member.1.Value is invalid."},
		{base + datum1 + "Value=-Inf", wrong, "The value -∞ for parameter MetricData.member.1.Value is invalid."},
		{base + datum1 + "Value=1e109", wrong, "The value 1E+109 for parameter MetricData.member.1.Value is invalid."},
		{base + datum1 + "StatisticValues.Sum=1&" + datum1 + "StatisticValues.Minimum=1", missing, "The parameter MetricData.member.1.StatisticValues.Maximum is required.\nThe parameter MetricData.member.1.StatisticValues.SampleCount is required."},
		{base + list(1, datum1+"StatisticValues.Sum=#&"+datum1+"StatisticValues.Minimum=2&"+datum1+"StatisticValues.Maximum=1&"+datum1+"StatisticValues.SampleCount=1"), wrong, "StatisticValues.Maximum must be greater than MetricData.member.1.StatisticValues.Minimum."},
		{base + list(1, datum1+"StatisticValues.Sum=#&"+datum1+"StatisticValues.Minimum=1&"+datum1+"StatisticValues.Maximum=1&"+datum1+"StatisticValues.SampleCount=-1"), wrong, "StatisticValues.SampleCount must be greater than 0."},
		{value + datum1 + "Unit=Metres", wrong, "The parameter MetricData.member.1.Unit must be a value in the set [ Seconds,"},
		{value + datum1 + "StorageResolution=300", wrong, "The parameter MetricData.member.1.StorageResolution must be a value in the set [ 1, 60 ]."},
		{value + datum1 + "Timestamp=2026-11-07T11:59:59Z", wrong, "The parameter MetricData.member.1.Timestamp must specify a time within the past two weeks."},
		{value + datum1 + "Timestamp=2026-11-21T14:00:01Z", wrong, "no more than two hours in the future"},
		{value + list(31, datum1+"Dimensions.member.#.Name=#&"+datum1+"Dimensions.member.#.Value=1"), wrong, "The collection MetricData.member.1.Dimensions must not have a size greater than 30."},
		{value + datum1 + "Dimensions.member.1.Name=a", missing, "The parameter MetricData.member.1.Dimensions.member.1.Value is required."},
		{value + list(2, datum1+"Dimensions.member.#.Name=a&"+datum1+"Dimensions.member.#.Value=1"), wrong, "No Metric may specify the same dimension twice."},
		{value + datum1 + "Dimensions.member.1.Name=a&" + datum1 + "Dimensions.member.1.Value=" + strings.Repeat("v", 1025), wrong, "The parameter MetricData.member.1.Dimensions.member.1.Value must be shorter than 1025 characters."},
		{base + datum1 + "Value=one", "", "The input cannot be read: Value"},
		{base + datum1 + "Value=1&" + datum1 + "Timestamp=noon", "", "The input cannot be read: Timestamp"},
		{"Namespace=app&MetricData.member.x.Value=1", "", "The input cannot be read: MetricData"},
	} {
		s := newService(t, 0)
		err := put(t, s, strings.TrimSuffix(c.form, "&"))
		wire, ok := err.(*wire.Error)
		if !ok || wire.Query != c.code || !strings.Contains(wire.Message, c.text) {
			t.Errorf("%.100s: %v, want %s %s", c.form, err, c.code, c.text)
		}
		if _, counts := s.store.snapshot(); counts.data != 0 {
			t.Errorf("%.100s: refused and kept", c.form)
		}
	}
}

// TestAllOrNothing: one wrong datum refuses the call, and values at the limits are allowed.
func TestAllOrNothing(t *testing.T) {
	s := newService(t, 0)
	base := []string{"Namespace=app", datum1 + "MetricName=m", datum1 + "Value=1"}
	if err := put(t, s, append(base, "MetricData.member.2.MetricName=n")...); err == nil {
		t.Error("a datum without a value was taken")
	}
	if len(shown(t, s)) != 3 {
		t.Errorf("a part of a refused call is shown: %v", shown(t, s))
	}
	for _, edge := range []string{
		"Timestamp=2026-11-07T12:00:00Z", "Timestamp=20261121T140000Z", "StorageResolution=1",
		"Dimensions=", "Values=", "Counts=", "Unit=Gigabits/Second",
	} {
		if err := put(t, s, append(base, datum1+edge)...); err != nil {
			t.Errorf("%s: %v", edge, err)
		}
	}
	both := []string{
		"Namespace=app", datum1 + "MetricName=both", datum1 + "Values.member.1=2",
		datum1 + "StatisticValues.SampleCount=1", datum1 + "StatisticValues.Sum=5",
		datum1 + "StatisticValues.Minimum=5", datum1 + "StatisticValues.Maximum=5",
	}
	if err := put(t, s, both...); err != nil {
		t.Errorf("values and a statistic set: %v", err)
	}
}

// TestProtocolsAgree: the same input in JSON, CBOR and a form makes the same series.
func TestProtocolsAgree(t *testing.T) {
	document := map[string]any{
		"Namespace": "app", "Unknown": []any{1, "x"},
		"MetricData": []any{map[string]any{
			"MetricName": "m", "Unit": "Seconds", "StorageResolution": 60,
			"Dimensions": []any{map[string]any{"Name": "a", "Value": "b"}},
			"Values":     []any{1, 2.5}, "Counts": []any{1, 2},
		}},
		"EntityMetricData": []any{map[string]any{
			"Entity":     map[string]any{"KeyAttributes": map[string]any{"Type": "Service"}},
			"MetricData": []any{map[string]any{"MetricName": "e", "Value": 1.5}},
		}},
		"StrictEntityValidation": true,
	}
	seconds := float64(noon.Add(-1500*time.Millisecond).UnixMilli()) / 1000
	first := document["MetricData"].([]any)[0].(map[string]any)
	first["Timestamp"] = seconds
	asJSON, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	first["Timestamp"] = cbor.Tag{Number: 1, Content: seconds}
	asCBOR, err := cbor.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"Namespace": {"app"}, "EntityMetricData.member.1.MetricData.member.1.MetricName": {"e"}, "EntityMetricData.member.1.MetricData.member.1.Value": {"1.5"}}
	for name, value := range map[string]string{
		"MetricName": "m", "Unit": "Seconds", "StorageResolution": "60", "Values.member.1": "1", "Values.member.2": "2.5",
		"Dimensions.member.1.Name": "a", "Dimensions.member.1.Value": "b", "Counts.member.1": "1", "Counts.member.2": "2",
		"Timestamp": "2026-11-21T11:59:58.5Z",
	} {
		form.Set(datum1+name, value)
	}
	parsed, err := wire.ParseForm([]byte(form.Encode() + "&"))
	if err != nil {
		t.Fatal(err)
	}
	var kept [3]map[string]series
	for i, call := range []*wire.Call{
		{Format: wire.JSON, Body: asJSON},
		{Format: wire.CBOR, Body: asCBOR},
		{Format: wire.Query, Form: parsed},
	} {
		s := newService(t, 0)
		call.Service, call.Operation, call.World = wire.CloudWatch, "PutMetricData", home
		if _, err := s.Serve(t.Context(), call); err != nil {
			t.Fatalf("protocol %d: %v", i, err)
		}
		all, _ := s.store.snapshot()
		kept[i] = map[string]series{}
		for _, one := range all {
			kept[i][one.metric] = one
		}
	}
	m := kept[0]["m"]
	if m.sum != 6 || m.count != 3 || !m.at.Equal(noon.Add(-1500*time.Millisecond)) || len(kept[0]) != 2 {
		t.Errorf("JSON: %+v", kept[0])
	}
	for i := 1; i < 3; i++ {
		if len(kept[i]) != 2 || kept[i]["m"] != m || kept[i]["e"] != kept[0]["e"] {
			t.Errorf("protocol %d: %+v, want %+v", i, kept[i], kept[0])
		}
	}
}

func TestUnreadable(t *testing.T) {
	for name, call := range map[string]*wire.Call{
		"JSON":         {Format: wire.JSON, Body: []byte(`{"Namespace":1}`)},
		"no JSON":      {Format: wire.JSON, Body: []byte(`{`)},
		"CBOR":         {Format: wire.CBOR, Body: []byte("\xa1\x69Namespace\x01")},
		"wrong tag":    {Format: wire.CBOR, Body: []byte("\xa1\x6aMetricData\x81\xa1\x69Timestamp\xc6\x01")},
		"no time":      {Format: wire.CBOR, Body: []byte("\xa1\x6aMetricData\x81\xa1\x69Timestamp\xc1\xf9\x7e\x00")},
		"a huge array": {Format: wire.CBOR, Body: []byte("\xa1\x6aMetricData\x9b\x00\x00\x00\x01\x00\x00\x00\x00")},
	} {
		call.Operation = "PutMetricData"
		_, err := newService(t, 0).Serve(t.Context(), call)
		if wire, ok := err.(*wire.Error); !ok || wire.Code != "SerializationException" {
			t.Errorf("%s: %v", name, err)
		}
	}
	big := &wire.Call{Operation: "PutMetricData", Body: make([]byte, maxInput+1)}
	if _, err := newService(t, 0).Serve(t.Context(), big); err.(*wire.Error).Status != 413 {
		t.Errorf("too large: %v", err)
	}
	other := &wire.Call{Operation: strings.Repeat("GetMetricData", 100)}
	if _, err := newService(t, 0).Serve(t.Context(), other); err.(*wire.Error).Query != "InvalidAction" ||
		len(err.Error()) > 300 {
		t.Errorf("another operation: %v", err)
	}
	if _, err := (STS{}).Serve(t.Context(), &wire.Call{Operation: "AssumeRole"}); err == nil {
		t.Error("STS has AssumeRole")
	}
	_, err := New(Config{MaxSeries: -1})
	for _, want := range []string{"MaxSeries is -1", "Now is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate says %v, want %s", err, want)
		}
	}
}

// FuzzPutMetricData: whatever is sent in whatever form is refused or kept, and can be shown.
func FuzzPutMetricData(f *testing.F) {
	f.Add(byte(0), []byte(`{"Namespace":"a","MetricData":[{"MetricName":"m","Value":"NaN"}]}`))
	f.Add(byte(0), []byte(`{"Namespace":"a","MetricData":[{"MetricName":"m","Value":1,"Timestamp":1795262400}]}`))
	f.Add(byte(1), []byte("\xa2\x69Namespace\x61a\x6aMetricData\x81\xa2\x6aMetricName\x61m\x65Value\xf9\x3c\x00"))
	f.Add(byte(1), []byte("\xbf\x69Namespace\x61a\x6aMetricData\x9f\xbf\x69Timestamp\xc1\x1a\x6a\xff\xff\xff\xff\xff\xff"))
	f.Add(byte(2), []byte("Namespace=a&MetricData.member.1.MetricName=m&MetricData.member.1.Value=1"))
	f.Fuzz(func(t *testing.T, format byte, body []byte) {
		call := &wire.Call{
			Service: wire.CloudWatch, Operation: "PutMetricData", World: home,
			Format: wire.Format(format % 3), Body: body,
		}
		if call.Format == wire.Query {
			form, err := wire.ParseForm(body)
			if err != nil {
				return
			}
			call.Form = form
		}
		s := newService(t, 0)
		_, err := s.Serve(t.Context(), call)
		if err != nil {
			if _, ok := err.(*wire.Error); !ok {
				t.Errorf("an internal failure: %v", err)
			}
			return
		}
		lines := shown(t, s)
		if lines["runnel_cloudwatch_series{}"] < 1 {
			t.Errorf("taken and not shown: %q", body)
		}
		for name, value := range lines {
			if math.IsNaN(value) {
				t.Errorf("%s is no number", name)
			}
		}
	})
}
