package dynamotable_test

import (
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/dynamotable"
)

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"app": true, "my_App-1.prod": true, strings.Repeat("a", 255): true,
		"": false, "a1": false, "two words": false, "größe": false, "a/b": false, "app\n": false,
		strings.Repeat("a", 256): false,
	} {
		if err := dynamotable.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
