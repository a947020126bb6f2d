package kinesis

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/runnel-stream/runnel/internal/wire"
)

// maxTags is the most tags of a stream or a consumer (AWS, "AddTagsToStream").
const maxTags = 50

// reservedTag is the prefix of AWS's own tag keys, in upper or lower case.
const reservedTag = "aws:"

// tagDescription is the model's Tag.
type tagDescription struct{ Key, Value string }

// describeTags lists tags by key.
func describeTags(tags map[string]string) []tagDescription {
	described := make([]tagDescription, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		described = append(described, tagDescription{key, tags[key]})
	}
	return described
}

// addTags returns an owner's tags with more added, which replace those of the same keys. It returns
// an error, and no tags, if a tag is not allowed or they become too many. owner is for the message:
// "stream S under account A".
//
// The texts are AWS's (kinesalite's test/addTagsToStream.js ran against it), apart from that about
// reserved keys, which is a guess. AWS says 10 where it means 50.
func addTags(
	tags map[string]string, more map[string]*string, owner string,
) (map[string]string, error) {
	next := make(map[string]string, len(tags)+len(more))
	maps.Copy(next, tags)
	texts := make([]string, 0, 2*len(more))
	for key, value := range more {
		if value == nil { // a tag's value is optional
			value = new(string)
		}
		next[key] = *value
		texts = append(texts, key, *value)
	}
	if err := checkTagTexts(texts, "add tags to "+owner); err != nil {
		return nil, err
	}
	for key := range more {
		if len(key) >= len(reservedTag) && strings.EqualFold(key[:len(reservedTag)], reservedTag) {
			return nil, invalid("Failed to add tags to %s because tag keys that begin with '%s' "+
				"are reserved.", owner, reservedTag)
		}
	}
	if len(next) > maxTags {
		return nil, invalid("Failed to add tags to %s because a given stream cannot have more "+
			"than %d tags associated with it.", owner, maxTags)
	}
	return next, nil
}

// removeTags returns the tags without the given keys. Keys that are not there are ignored.
func removeTags(tags map[string]string, keys []string, owner string) (map[string]string, error) {
	if err := checkTagTexts(keys, "remove tags from "+owner); err != nil {
		return nil, err
	}
	next := maps.Clone(tags)
	for _, key := range keys {
		delete(next, key)
	}
	return next, nil
}

// checkTagTexts returns an error unless keys and values have allowed characters only. AWS checks
// twice, with a text for each check. The percent sign passes the first check and fails the second
// (kinesalite's test/removeTagsFromStream.js). Neither text lists the colon, which both checks pass
// (Developer Guide: "Tag your streams").
func checkTagTexts(texts []string, action string) *wire.Error {
	percent := false
	for _, text := range texts {
		for _, c := range text {
			if !isTagCharacter(c) {
				return invalid("Some tags contain invalid characters. Valid characters: " +
					"Unicode letters, digits, white space, _ . / = + - %% @.")
			}
			percent = percent || c == '%'
		}
	}
	if percent {
		return invalid("Failed to %s because some tags contained illegal characters. The allowed "+
			"characters are Unicode letters, white-spaces, '_',',','/','=','+','-','@'.",
			action)
	}
	return nil
}

// isTagCharacter reports whether c passes the first check. Tabs and line breaks do not
// (kinesalite's tests): white space means Unicode's separators.
func isTagCharacter(c rune) bool {
	return strings.ContainsRune("_./=+-%@:", c) || unicode.In(c, unicode.L, unicode.N, unicode.Z)
}
