package limit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/spell"
)

// ErrSpec is wrapped by every error of Parse.
var ErrSpec = errors.New("bad specification of limits")

const (
	maxWords = 1000
	maxName  = 128     // of a stream
	maxValue = 1 << 40 // of a limit
	maxDaily = 10_000  // of a daily limit: the meter remembers each call
)

// Parse reads a specification in the language of the package comment. The plan is nil if it
// limits nothing, as with "" and "off". An error names the wrong rule and wraps ErrSpec.
func Parse(spec string) (*Plan, error) {
	words := strings.FieldsFunc(spec, func(r rune) bool {
		return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n' || r == '\r'
	})
	if len(words) > maxWords {
		return nil, fmt.Errorf("%w: more than %d rules", ErrSpec, maxWords)
	}
	plan := &Plan{general: map[ID]int64{}, streams: map[string]map[ID]int64{}}
	for i, word := range words {
		if err := plan.add(word, i == 0); err != nil {
			return nil, fmt.Errorf("%w: rule %q: %w", ErrSpec, word, err)
		}
	}
	if plan.String() == "off" {
		return nil, nil //nolint:nilnil // documented: nothing is limited
	}
	return plan, nil
}

func (p *Plan) add(word string, first bool) error {
	if word == "off" || word == "aws" {
		if !first {
			return fmt.Errorf("%s must come first, before its exceptions", word)
		}
		p.aws = word == "aws"
		return nil
	}
	name, text, ok := strings.Cut(word, "=")
	if !ok {
		return errors.New("it must read off, aws, NAME=VALUE or STREAM/NAME=VALUE, as " +
			"write-records=100")
	}
	stream, limit, ofStream := strings.Cut(name, "/")
	if !ofStream {
		limit = name
	}
	id, found := byName[limit]
	if !found {
		return fmt.Errorf("unknown limit %q%s; there are: %s", limit,
			spell.DidYouMean(limit, names()), strings.Join(names(), ", "))
	}
	value, err := id.parse(text)
	if err != nil {
		return err
	}
	if !ofStream {
		return set(p.general, id, value)
	}
	if err := checkStream(stream); err != nil {
		return err
	}
	if table[id].Per == Account {
		return fmt.Errorf("%s is a limit of the account: it cannot be set for one stream", limit)
	}
	if p.streams[stream] == nil {
		p.streams[stream] = map[ID]int64{}
	}
	return set(p.streams[stream], id, value)
}

func set(values map[ID]int64, id ID, value int64) error {
	if _, twice := values[id]; twice {
		return fmt.Errorf("%s is set twice", table[id].Name)
	}
	values[id] = value
	return nil
}

// parse reads a limit's value.
func (id ID) parse(text string) (int64, error) {
	if text == "off" {
		return off, nil
	}
	highest, factor, units := int64(maxValue), int64(1), ""
	if table[id].Window > time.Second {
		highest = maxDaily
	}
	if table[id].Unit == Bytes {
		units = ", also with KiB, MiB or GiB behind it"
		for _, size := range sizes {
			if number, ok := strings.CutSuffix(text, size.name); ok {
				text, factor = number, size.bytes
				break
			}
		}
	}
	value, err := strconv.ParseUint(text, 10, 63)
	if err != nil || value < 1 || int64(value) > highest/factor {
		return 0, fmt.Errorf("%s needs off or a number from 1 to %d%s",
			table[id].Name, highest, units)
	}
	return int64(value) * factor, nil
}

func checkStream(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("the stream before / needs a name of 1 to %d characters", maxName)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '_', c == '.', c == '-':
		default:
			return fmt.Errorf("%q is no name of a stream", name)
		}
	}
	return nil
}

func names() []string {
	all := make([]string, len(table))
	for i := range table {
		all[i] = table[i].Name
	}
	return all
}
