package kinesis

import (
	"encoding/json"

	"github.com/runnel-stream/runnel/internal/wire"
)

// pageLife is the lifetime of a NextToken, in ms (AWS, "ListShards": "Tokens expire after 300
// seconds").
const pageLife = 300_000

// page is the content of a NextToken: the list to go on with, and the last item before this page.
type page struct {
	Issued  int64        `json:"issued"` // ms since 1970
	After   string       `json:"after"`  // the name of a stream, the id of a shard
	Stream  string       `json:"stream,omitempty"`
	Created int64        `json:"created,omitempty"` // of the stream, ms since 1970
	Filter  *shardFilter `json:"filter,omitempty"`
}

func (s *sealer) sealPage(kind byte, world wire.World, p page) (*string, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	token := s.seal(kind, world, data)
	return &token, nil
}

func (s *sealer) openPage(
	kind byte, world wire.World, token string, now moment,
) (p page, err error) {
	data, ok := s.open(kind, world, token)
	if !ok || json.Unmarshal(data, &p) != nil {
		return p, invalid("NextToken is not valid.")
	}
	if age := now.Elapsed - p.Issued; age > pageLife {
		return p, fail(codeExpiredToken, "The NextToken was returned at %s and right now it is "+
			"%s: it was good for %d milliseconds. List again without it.",
			javaTime(now.Stamp-age), javaTime(now.Stamp), pageLife)
	}
	return p, nil
}
