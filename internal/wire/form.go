package wire

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The bounds of a form: a few times those of the KCL's largest PutMetricData.
const (
	maxParameters = 100_000
	maxFormDepth  = 10 // EntityMetricData.member.1.MetricData.member.1.Dimensions.member.1.Name
)

var errFormSize = fmt.Errorf("the form has more than %d parameters", maxParameters)

// Form is a body of the query protocol as a tree: parameters' names are paths, as
// "MetricData.member.1.Value". A nil Form is a parameter that was not sent.
type Form struct {
	value   string
	members map[string]*Form
}

// ParseForm parses a form. Of a repeated parameter the last one counts.
func ParseForm(body []byte) (*Form, error) {
	root := &Form{}
	count := 0
	for pair := range strings.SplitSeq(string(body), "&") {
		if pair == "" { // the C++ SDK ends its forms with one
			continue
		}
		if count++; count > maxParameters {
			return nil, errFormSize
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return nil, fmt.Errorf("the form cannot be read: %w", err)
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, fmt.Errorf("the form cannot be read: %w", err)
		}
		if strings.Count(name, ".") >= maxFormDepth {
			return nil, errors.New("the form cannot be read: a parameter's name has too many parts")
		}
		root.at(name).value = value
	}
	return root, nil
}

// at returns the parameter of that name, and creates a missing one.
func (f *Form) at(name string) *Form {
	for part := range strings.SplitSeq(name, ".") {
		next := f.members[part]
		if next == nil {
			if f.members == nil {
				f.members = map[string]*Form{}
			}
			next = &Form{}
			f.members[part] = next
		}
		f = next
	}
	return f
}

// Value returns the parameter's value; "" if it was not sent.
func (f *Form) Value() string {
	if f == nil {
		return ""
	}
	return f.value
}

// Get returns a member of the parameter; nil if it was not sent.
func (f *Form) Get(name string) *Form {
	if f == nil {
		return nil
	}
	return f.members[name]
}

// List returns the members of a list in the order of their numbers, which may have gaps. An
// empty list is sent as a parameter without a value.
func (f *Form) List() ([]*Form, error) {
	if f == nil {
		return nil, nil
	}
	type element struct {
		number int
		form   *Form
	}
	var elements []element
	for text, form := range f.Get("member").all() {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 {
			return nil, fmt.Errorf("%q is no number of a list's member", text)
		}
		elements = append(elements, element{number, form})
	}
	slices.SortFunc(elements, func(a, b element) int { return cmp.Compare(a.number, b.number) })
	list := make([]*Form, len(elements))
	for i, e := range elements {
		list[i] = e.form
	}
	return list, nil
}

func (f *Form) all() map[string]*Form {
	if f == nil {
		return nil
	}
	return f.members
}
