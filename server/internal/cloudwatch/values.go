package cloudwatch

import (
	"math"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
)

// checkValues checks a datum's values: one value, values with their counts, or a statistic set.
// AWS also allows values together with a set (LocalStack, test_put_metric_data_validation).
func (d *datum) checkValues(name string) *wire.Error {
	value, values, set := name+".Value", name+".Values", name+".StatisticValues"
	switch {
	case d.Value != nil && len(d.Values) > 0:
		return contradiction(value, values)
	case d.Value != nil && !d.StatisticValues.empty():
		return contradiction(value, set)
	case d.Value == nil && len(d.Values) == 0 && d.StatisticValues.empty():
		// Eucalyptus' text knows two parameters; that AWS names the third is a guess.
		return missing("At least one of the parameters " + value + ", " + values + " or " + set +
			" must be specified.")
	}
	if d.Value != nil {
		return checkNumber(value, *d.Value)
	}
	if err := d.checkLists(name); err != nil {
		return err
	}
	if d.StatisticValues.empty() {
		return nil
	}
	return d.StatisticValues.check(set)
}

func (d *datum) checkLists(name string) *wire.Error {
	switch {
	case len(d.Values) > maxValues:
		return invalid("The collection %s.Values must not have a size greater than %d.", name,
			maxValues)
	case len(d.Counts) > 0 && len(d.Counts) != len(d.Values):
		return invalid("The parameters %s.Values and %[1]s.Counts must be of the same size.",
			name)
	}
	for i, value := range d.Values {
		member := ".member." + strconv.Itoa(i+1)
		if err := checkNumber(name+".Values"+member, value); err != nil {
			return err
		}
		if len(d.Counts) == 0 {
			continue
		}
		if err := checkCount(name+".Counts"+member, d.Counts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *statistics) empty() bool {
	return s == nil || s.SampleCount == nil && s.Sum == nil && s.Minimum == nil && s.Maximum == nil
}

// check checks a set. Except for the text about a number, the texts are those of Eucalyptus'
// CloudWatch, an implementation after AWS's.
func (s *statistics) check(name string) *wire.Error {
	var absent []string
	fields := []struct {
		name  string
		value *number
	}{
		{name + ".Maximum", s.Maximum},
		{name + ".Minimum", s.Minimum},
		{name + ".SampleCount", s.SampleCount},
		{name + ".Sum", s.Sum},
	}
	for _, field := range fields {
		if field.value == nil {
			absent = append(absent, "The parameter "+field.name+" is required.")
		}
	}
	if absent != nil {
		return missing(strings.Join(absent, "\n"))
	}
	for _, field := range fields {
		if err := checkNumber(field.name, *field.value); err != nil {
			return err
		}
	}
	if *s.Maximum < *s.Minimum {
		return invalid("The parameter %s.Maximum must be greater than %[1]s.Minimum.", name)
	}
	return checkCount(name+".SampleCount", *s.SampleCount)
}

// checkNumber refuses NaN, infinities, and numbers that are too large or too small.
func checkNumber(name string, value number) *wire.Error {
	v := float64(value)
	if !math.IsNaN(v) && math.Abs(v) <= maxValue {
		return nil
	}
	text := strconv.FormatFloat(v, 'G', -1, 64)
	if math.IsInf(v, 0) { // in AWS's spelling
		text = strings.TrimPrefix(strings.Replace(text, "Inf", "∞", 1), "+")
	}
	return invalid("The value %s for parameter %s is invalid.", text, name)
}

func checkCount(name string, value number) *wire.Error {
	if err := checkNumber(name, value); err != nil {
		return err
	}
	switch {
	case value == 0:
		return invalid("The parameter %s must not equal 0.", name)
	case value < 0:
		return invalid("The parameter %s must be greater than 0.", name)
	}
	return nil
}

// summary is a datum's contribution to its series.
type summary struct{ count, sum, minimum, maximum float64 }

// summary sums a valid datum up.
func (d *datum) summary() summary {
	if d.Value != nil {
		v := float64(*d.Value)
		return summary{1, v, v, v}
	}
	s := summary{minimum: math.Inf(1), maximum: math.Inf(-1)}
	for i, value := range d.Values {
		count := 1.0
		if len(d.Counts) > 0 {
			count = float64(d.Counts[i])
		}
		s.add(summary{count, count * float64(value), float64(value), float64(value)})
	}
	if set := d.StatisticValues; !set.empty() {
		s.add(summary{
			float64(*set.SampleCount), float64(*set.Sum), float64(*set.Minimum),
			float64(*set.Maximum),
		})
	}
	return s
}

func (s *summary) add(more summary) {
	s.count += more.count
	s.sum += more.sum
	s.minimum = min(s.minimum, more.minimum)
	s.maximum = max(s.maximum, more.maximum)
}
