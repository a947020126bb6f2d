package mongostore

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/runnel-stream/runnel/sink/rollup"
)

// TestClassify has errors that the stand-in does not make.
func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		lasting bool
	}{
		"none":              {nil, false},
		"of the connection": {errors.New("handshake"), false},
		"no right":          {mongo.CommandError{Code: 13, Name: "Unauthorized"}, true},
		"a validator":       {mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 121}}}, true},
		"another primary":   {mongo.CommandError{Code: 10107, Name: "NotWritablePrimary"}, false},
		"labelled": {
			mongo.CommandError{Code: 1, Labels: []string{"RetryableWriteError"}}, false,
		},
		"a late majority": {
			mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 100}}, false,
		},
	} {
		if got := classify(c.err); errors.Is(got, rollup.ErrLasting) != c.lasting ||
			(got == nil) != (c.err == nil) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
