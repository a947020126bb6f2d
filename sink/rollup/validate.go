package rollup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Validate returns nil, or an error with one sentence for each fault.
func (d Definition) Validate() error {
	d = d.WithDefaults()
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("rollup: "+format, args...))
		}
	}
	fault(d.Bucket < 0, "the bucket %s is negative: want a part of a day, such as 1m, or 0 for "+
		"none", d.Bucket)
	fault(d.Bucket > 0 && (day%d.Bucket != 0 || d.Bucket%time.Millisecond != 0),
		"the bucket %s does not divide a day into whole milliseconds: want such as 1m, 1h or 1d",
		d.Bucket)
	fault(len(d.Keys) == 0 && d.Bucket == 0, "there is neither a key nor a bucket, so all records "+
		"would be one row: add one of them")
	fault(len(d.Keys) > maxKeys, "there are %d keys: a database's index takes %d", len(d.Keys),
		maxKeys)
	fault(len(d.Columns) == 0, "there is no column: add one, such as a count")
	if reason := pointerFault(d.Time); d.Time != "" {
		fault(reason != "", "the time's pointer %q %s", d.Time, reason)
	}
	for i := range d.Keys {
		d.Keys[i].validate("key", fault)
		d.Keys[i].validatePointer("key", fault)
	}
	for i := range d.Columns {
		d.Columns[i].validate(fault)
	}
	d.validateNames(fault)
	return errors.Join(faults...)
}

// faultFunc reports a fault if bad is true.
type faultFunc func(bool, string, ...any)

// validateNames reports the names that more than one column has.
func (d Definition) validateNames(fault faultFunc) {
	uses := map[string]int{}
	for _, f := range d.fields() {
		uses[f.Name]++
		fault(f.Name != "" && uses[f.Name] == 2,
			"two columns have the name %q: NAME=/pointer names one", f.Name)
	}
}

// fields returns the fields of the keys and then of the columns.
func (d Definition) fields() []Field {
	fields := slices.Clone(d.Keys)
	for _, c := range d.Columns {
		fields = append(fields, c.Field)
	}
	return fields
}

func (c *Column) validate(fault faultFunc) {
	what := strings.TrimSpace(string(c.Op) + " column")
	c.Field.validate(what, fault)
	switch c.Op {
	case Count:
		fault(c.Pointer != "", "the count %q has the pointer %q: a count needs none, remove it",
			c.Name, c.Pointer)
		fault(c.Type != Int, "the count %q has the type %q: want %q", c.Name, c.Type, Int)
	case Own:
		fault(c.Pointer != "", "the own column %q has the pointer %q: its function Of reads the "+
			"record, remove the pointer", c.Name, c.Pointer)
		fault(c.Of == nil || c.Merge == nil, "the own column %q lacks a function: set Of and Merge",
			c.Name)
	case Sum, Min, Max, Last:
		c.validatePointer(what, fault)
		fault(c.Op == Sum && c.Type == Text, "the column %q is a sum of texts: want the type %q "+
			"or %q", c.Name, Int, Double)
	default:
		fault(true, "the column %q has the unknown operation %q: want %q, %q, %q, %q, %q or %q",
			c.Name, c.Op, Count, Sum, Min, Max, Last, Own)
	}
	fault(c.Op != Own && (c.Of != nil || c.Merge != nil), "the column %q has a function of its "+
		"own: set Op to %q, or remove it", c.Name, Own)
}

func (f *Field) validatePointer(what string, fault faultFunc) {
	reason := pointerFault(f.Pointer)
	fault(reason != "", "the pointer %q of a %s %s", f.Pointer, what, reason)
}

func (f *Field) validate(what string, fault faultFunc) {
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789_"
	fault(f.Name == "", "a %s with the pointer %q has no name: NAME=/pointer gives it one", what,
		f.Pointer)
	fault(strings.Trim(f.Name, plain) != "", "the name %q of a %s has other characters than a to "+
		"z, 0 to 9 and _: NAME=/pointer gives it another", f.Name, what)
	fault(len(f.Name) > maxName, "the name %q of a %s has %d bytes: NAME=/pointer gives it one of "+
		"at most %d", f.Name, what, len(f.Name), maxName)
	reserved := f.Name == bucketName || f.Name == lastOrderName ||
		f.Name == countName && what != string(Count)+" column" ||
		slices.Contains(systemNames, f.Name)
	fault(reserved, "the name %q of a %s is reserved: NAME=/pointer gives it another", f.Name, what)
	fault(f.Type != Int && f.Type != Double && f.Type != Text,
		"the column %q has the type %q: want %q, %q or %q", f.Name, f.Type, Int, Double, Text)
}
