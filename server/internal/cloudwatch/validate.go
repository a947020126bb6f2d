package cloudwatch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
)

// The bounds of a call: AWS, API reference, PutMetricData, MetricDatum and Dimension.
const (
	maxMetrics    = 1000
	maxEntities   = 2
	maxDimensions = 30
	maxValues     = 150
	maxName       = 255
	maxDimension  = 1024 // of a dimension's value

	past   = 14 * 24 * time.Hour
	future = 2 * time.Hour
)

// maxValue is the largest value, and its negative the smallest.
var maxValue = math.Ldexp(1, 360)

// units are the model's StandardUnit.
var units = []string{
	"Seconds", "Microseconds", "Milliseconds", "Bytes", "Kilobytes", "Megabytes", "Gigabytes",
	"Terabytes", "Bits", "Kilobits", "Megabits", "Gigabits", "Terabits", "Percent", "Count",
	"Bytes/Second", "Kilobytes/Second", "Megabytes/Second", "Gigabytes/Second",
	"Terabytes/Second", "Bits/Second", "Kilobits/Second", "Megabits/Second", "Gigabits/Second",
	"Terabits/Second", "Count/Second", "None",
}

// The texts: LocalStack's test_put_metric_data_validation, which was run against AWS, and
// reports of users of AWS (AdRoll/goamz#355, cloud-custodian#2559, amazon-cloudwatch-agent#240,
// botocore#1671, sidekiq-cloudwatchmetrics#42). Those without a report are marked as guesses.

func missing(message string) *wire.Error {
	return &wire.Error{
		Code:  "com.amazonaws.cloudwatch#MissingRequiredParameterException",
		Query: "MissingParameter", Message: message,
	}
}

func invalid(format string, args ...any) *wire.Error {
	return &wire.Error{
		Code:  "com.amazonaws.cloudwatch#InvalidParameterValueException",
		Query: "InvalidParameterValue", Message: fmt.Sprintf(format, args...),
	}
}

func contradiction(a, b string) *wire.Error {
	return &wire.Error{
		Code:  "com.amazonaws.cloudwatch#InvalidParameterCombinationException",
		Query: "InvalidParameterCombination",
		Message: fmt.Sprintf("The parameters %s and %s are mutually exclusive and you have "+
			"specified both.", a, b),
	}
}

// validate checks the input; the first fault counts.
func (in *input) validate(now time.Time) *wire.Error {
	if err := checkText("Namespace", in.Namespace, maxName); err != nil {
		return err
	}
	if strings.HasPrefix(*in.Namespace, "AWS/") { // eutester, test_aws_reserved_namespaces
		return invalid("The value AWS/ for parameter Namespace is invalid.")
	}
	count := len(in.MetricData)
	for _, entity := range in.EntityMetricData {
		count += len(entity.MetricData)
	}
	switch {
	case count == 0:
		return missing("The parameter MetricData is required.")
	case count > maxMetrics:
		return invalid("The collection MetricData must not have a size greater than %d.",
			maxMetrics)
	case len(in.EntityMetricData) > maxEntities: // a guess
		return invalid("The collection EntityMetricData must not have a size greater than %d.",
			maxEntities)
	}
	for name, d := range in.data() {
		if err := d.validate(name, now); err != nil {
			return err
		}
	}
	return nil
}

// data yields every datum with its name in the query protocol; AWS's texts use that name in every
// protocol.
func (in *input) data() func(yield func(string, *datum) bool) {
	return func(yield func(string, *datum) bool) {
		for i := range in.MetricData {
			if !yield("MetricData.member."+strconv.Itoa(i+1), &in.MetricData[i]) {
				return
			}
		}
		for e, entity := range in.EntityMetricData {
			for i := range entity.MetricData {
				name := fmt.Sprintf("EntityMetricData.member.%d.MetricData.member.%d", e+1, i+1)
				if !yield(name, &entity.MetricData[i]) {
					return
				}
			}
		}
	}
}

func (d *datum) validate(name string, now time.Time) *wire.Error {
	if err := checkText(name+".MetricName", d.MetricName, maxName); err != nil {
		return err
	}
	if err := d.checkDimensions(name + ".Dimensions"); err != nil {
		return err
	}
	if d.Timestamp != nil {
		switch age := now.Sub(d.Timestamp.Time); {
		case age > past:
			return invalid("The parameter %s.Timestamp must specify a time within the past two "+
				"weeks.", name)
		case age < -future: // a guess
			return invalid("The parameter %s.Timestamp must specify a time no more than two "+
				"hours in the future.", name)
		}
	}
	if d.Unit != nil && !slices.Contains(units, *d.Unit) {
		return invalid("The parameter %s.Unit must be a value in the set [ %s ].", name,
			strings.Join(units, ", "))
	}
	if r := d.StorageResolution; r != nil && *r != 1 && *r != 60 {
		return invalid("The parameter %s.StorageResolution must be a value in the set [ 1, 60 ].",
			name)
	}
	return d.checkValues(name)
}

func (d *datum) checkDimensions(name string) *wire.Error {
	if len(d.Dimensions) > maxDimensions {
		return invalid("The collection %s must not have a size greater than %d.", name,
			maxDimensions)
	}
	seen := make(map[string]bool, len(d.Dimensions))
	for i, pair := range d.Dimensions {
		member := name + ".member." + strconv.Itoa(i+1)
		if err := checkText(member+".Name", pair.Name, maxName); err != nil {
			return err
		}
		if err := checkText(member+".Value", pair.Value, maxDimension); err != nil {
			return err
		}
		if seen[*pair.Name] { // Eucalyptus' CloudWatch, an implementation after AWS's
			return invalid("No Metric may specify the same dimension twice.")
		}
		seen[*pair.Name] = true
	}
	return nil
}

// checkText checks a name. AWS documents that names are ASCII without control characters, do not
// begin with a colon, and are not all white space. The last three texts are guesses.
func checkText(name string, text *string, longest int) *wire.Error {
	switch {
	case text == nil || *text == "":
		return missing("The parameter " + name + " is required.")
	case len(*text) > longest:
		return invalid("The parameter %s must be shorter than %d characters.", name, longest+1)
	case strings.ContainsFunc(*text, func(r rune) bool { return r < ' ' || r > '~' }):
		return invalid("The parameter %s must contain only ASCII characters, and no control "+
			"characters.", name)
	case strings.HasPrefix(*text, ":"):
		return invalid("The value %s for parameter %s is invalid.", *text, name)
	case strings.TrimSpace(*text) == "":
		return invalid("The parameter %s must contain a character that is no white space.", name)
	}
	return nil
}
