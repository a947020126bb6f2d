package dynamotable

import (
	"fmt"
	"regexp"
	"sync"
)

var nameSyntax = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
})

// CheckName returns an error if a table cannot have a name ("Naming rules" in the DynamoDB guide).
// DynamoDB's own message does not say where the name comes from.
func CheckName(name string) error {
	if !nameSyntax().MatchString(name) {
		return fmt.Errorf("%q cannot name a DynamoDB table: want 3 to 255 of letters, digits, "+
			"'_', '-' and '.'", name)
	}
	return nil
}
