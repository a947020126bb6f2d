package limit

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Plan is a parsed specification. It is immutable. A nil Plan limits nothing.
type Plan struct {
	aws     bool // unset limits are as on AWS; otherwise they do not apply
	general map[ID]int64
	streams map[string]map[ID]int64
}

// off is the value of a limit that does not apply.
const off = int64(0)

// Value returns a limit for a stream, or for the account if stream is "". It returns false if the
// limit does not apply.
func (p *Plan) Value(id ID, stream string) (int64, bool) {
	if p == nil {
		return 0, false
	}
	value, set := p.streams[stream][id]
	if !set {
		value = p.generalValue(id)
	}
	return value, value != off
}

func (p *Plan) generalValue(id ID) int64 {
	if value, set := p.general[id]; set {
		return value
	}
	return p.baseValue(id)
}

func (p *Plan) baseValue(id ID) int64 {
	if p.aws {
		return table[id].Default
	}
	return off
}

// String returns the plan in its shortest form in the language of Parse.
func (p *Plan) String() string {
	if p == nil {
		return "off"
	}
	var words []string
	if p.aws {
		words = append(words, "aws")
	}
	for _, id := range slices.Sorted(maps.Keys(p.general)) {
		if value := p.general[id]; value != p.baseValue(id) {
			words = append(words, table[id].Name+"="+id.format(value))
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(p.streams)) {
		for _, id := range slices.Sorted(maps.Keys(p.streams[stream])) {
			if value := p.streams[stream][id]; value != p.generalValue(id) {
				words = append(words, stream+"/"+table[id].Name+"="+id.format(value))
			}
		}
	}
	if len(words) == 0 {
		return "off"
	}
	return strings.Join(words, ",")
}

// sizes are the units of bytes, the largest first.
var sizes = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func (id ID) format(value int64) string {
	if value == off {
		return "off"
	}
	if table[id].Unit == Bytes {
		for _, size := range sizes {
			if value%size.bytes == 0 {
				return strconv.FormatInt(value/size.bytes, 10) + size.name
			}
		}
	}
	return strconv.FormatInt(value, 10)
}
