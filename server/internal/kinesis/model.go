package kinesis

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

//go:generate go run modelgen.go service-2.json

// The kinds of the model's shapes.
const (
	textShape      = wire.TextShape
	integerShape   = wire.IntegerShape
	booleanShape   = wire.BooleanShape
	timestampShape = wire.TimestampShape
	blobShape      = wire.BlobShape
	listShape      = wire.ListShape
	mapShape       = wire.MapShape
	structureShape = wire.StructureShape
)

// shape is one shape of the service model: a kind of value and its constraints. The table of
// shapes, model_table.go, is generated.
type shape struct {
	kind     wire.Shape
	min, max *int64   // of a number, of a text's characters, a blob's bytes, a list's elements, …
	pattern  string   // that a whole text matches; "": any
	values   []string // that a text can have; nil: any
	key      string   // the shape of a map's keys
	element  string   // the shape of a list's elements or a map's values
	members  []member // of a structure, in the order of checking
}

// member is a member of a structure.
type member struct {
	name     string
	shape    string
	required bool
}

// bound is one of a shape.
func bound(n int64) *int64 { return &n }

// ignoredMember is in every input, "reserved for future use": its value is ignored.
const ignoredMember = "StreamId"

// matcher returns a function that matches a whole text with a pattern. The two patterns of the
// frequent calls are written by hand.
func matcher(pattern string) func(string) bool {
	switch pattern {
	case "":
		return nil
	case "[a-zA-Z0-9_.-]+":
		return catalogue.IsName
	}
	var more int
	if n, _ := fmt.Sscanf(pattern, `0|([1-9]\d{0,%d})`, &more); n == 1 {
		return func(s string) bool { return isDecimal(s, more+1) }
	}
	// Compiled at first use: hundreds of members have a pattern, which would delay the start.
	compiled := sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("^(?:" + pattern + ")$")
	})
	return func(text string) bool { return compiled().MatchString(text) }
}

// isDecimal reports whether s is a decimal integer of at most that many digits, without leading
// zeros.
func isDecimal(s string, digits int) bool {
	if s == "" || len(s) > digits || (s[0] == '0' && len(s) > 1) {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// label returns a member's name as in messages: "streamName".
func label(name string) string { return strings.ToLower(name[:1]) + name[1:] }
