package wire

import (
	"io"
	"net/http"
	"time"
)

const (
	// maxRest is the most that is read of the body of a refused request.
	maxRest = 32 << 20
	// restTime is the time for that.
	restTime = 5 * time.Second
)

// TakeRest reads the rest of a refused request's body over HTTP/2, and drops it. Otherwise net/http
// would reset the stream behind the answer, with STREAM_CLOSED for each frame that the client has
// sent meanwhile. Clients such as curl report the reset then, and not the answer.
func TakeRest(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 2 {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(restTime))
	_, _ = io.CopyN(io.Discard, r.Body, maxRest)
}
