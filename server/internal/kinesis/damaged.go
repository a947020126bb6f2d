package kinesis

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// damaged gives an error of reading a shard's damaged records an answer that says so. Without it a
// client would see the InternalFailure of a call that may be tried again; here every further try
// fails, until an operator acts. Other errors stay as they are.
func damaged(err error, st *catalogue.Stream, sh *catalogue.Shard) error {
	var corrupt *shardlog.CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	answer := &wire.Error{
		Code: codeRecordInternal, Status: http.StatusInternalServerError,
		Message: fmt.Sprintf("Records of stream %s, %s are damaged on the server's disk, from its "+
			"record %d on. Trying again does not help. To save what is whole, stop the server and "+
			"run runnel fsck --repair; to read on behind them, start it with --skip-damaged.",
			st.Name, sh.ID(), corrupt.Index),
	}
	return fmt.Errorf("%w: %w", answer, err)
}
