package wire

import "testing"

// A long buffer fits the next long answer, too, which is rarely of the same length. One that is
// longer than any ordinary answer is not kept.
func TestLongBuffersAreUsedAgain(t *testing.T) {
	for len(longest) > 0 {
		<-longest
	}
	const length = 14<<20 + 12_345
	first := bufferFor(length)
	giveBack(first)
	if again := bufferFor(length + 100_000); again != first || cap(*again) < length+100_000 {
		t.Errorf("another buffer, of %d bytes", cap(*again))
	}
	giveBack(bufferFor(longestKept + 1))
	if len(longest) > 0 {
		t.Errorf("a buffer of %d bytes is kept", cap(*<-longest))
	}
}
