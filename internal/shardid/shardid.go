// Package shardid is the form of shard ids as AWS writes them, "shardId-" and twelve digits. Both
// halves use it. AWS documents no form, so programs show an id of this package only if no stream
// has given one.
package shardid

import (
	"strconv"
	"strings"
)

// Prefix is the text before the digits.
const Prefix = "shardId-"

// Max is the highest number of a shard: sequence numbers have 31 bits for it.
const Max = 1<<31 - 1

const digits = "000000000000"

// Of returns the id of the shard with the number, as "shardId-000000000003".
func Of(number uint32) string { return string(Append(nil, number)) }

// Append appends the id of the shard with the number.
func Append(dst []byte, number uint32) []byte {
	dst = append(append(dst, Prefix...), digits...)
	for at := len(dst) - 1; number > 0; at-- {
		dst[at] = '0' + byte(number%10)
		number /= 10
	}
	return dst
}

// Parse returns the number in a shard id, and whether it has one up to Max. Like AWS it takes any
// text before the dash, and none: "shardId-000000000003", "shardId-3", "x-3" and "3" are the same.
func Parse(id string) (number uint32, ok bool) {
	if _, after, found := strings.Cut(id, "-"); found {
		id = after
	}
	n, err := strconv.ParseUint(id, 10, 31)
	return uint32(n), err == nil
}

// Short returns the id without its prefix and leading zeros, as "3", for narrow columns. Any other
// text than an id stays as it is.
func Short(id string) string {
	number, found := strings.CutPrefix(id, Prefix)
	if !found {
		return id
	}
	if number = strings.TrimLeft(number, "0"); number == "" {
		return "0"
	}
	return number
}
